package throttle

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// twins makes the same calls of a Throttler and of its twin, and compares all answers. draw
// chooses each call: it returns a number below n.
type twins struct {
	*testing.T

	draw     func(n int) int
	traffic  traffic
	code     *Throttler
	twin     *twin
	fair     fairness
	now      headgate.Instant
	waiting  []*Request // queued, or refused and not yet reported
	inFlight []*Request
	unused   []*Request     // ended, to be used again
	seen     map[string]int // counts each kind of answer
	trace    []string
}

// TestThrottlerIsItsTwin compares random traces with the twin. Clocks step back and forth, limits
// change midway, and requests leave at any time. There are more tenants and routes than places.
func TestThrottlerIsItsTwin(t *testing.T) {
	seeds, seen := uint64(200), map[string]int{}
	if race.On {
		seeds = 50
	}
	for seed := range seeds {
		d := twinsOf(t, rand.New(rand.NewPCG(seed, 5)).IntN, seen)
		d.log("seed", seed)
		for range 400 {
			d.step()
		}
		d.empty()
	}
	for _, kind := range []string{
		"allow", "wait", "deny throttle_full", "deny throttle_deadline", "next allow", "next deny throttle_evicted",
		"next deny throttle_deadline", "probe", "a shared account", "beyond the share", "a forgotten route", "a probe of a hang", "patience in a hang", "the time of a probe",
	} {
		if seen[kind] < 10 {
			t.Errorf("only %d times: %s", seen[kind], kind)
		}
	}
}

func twinsOf(t *testing.T, draw func(int) int, seen map[string]int) *twins {
	t.Helper()
	d := &twins{T: t, draw: draw, now: headgate.Instant(time.Hour), seen: seen}
	d.traffic = randomTraffic(draw)
	c := d.config()
	code, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	d.code, d.twin = code, newTwin(c)
	return d
}

// step moves the clock and makes one call.
func (d *twins) step() {
	d.Helper()
	d.tick()
	switch n := d.draw(100); {
	case n < 60:
		d.arrive()
	case n < 88:
		d.leave(&d.inFlight)
	case n < 92:
		d.leave(&d.waiting)
	case n < 96:
		d.expire()
	case n < 98:
		d.patience()
		if d.draw(4) == 0 {
			d.begins()
		}
	default:
		d.configure()
	}
	d.next()
	d.compare()
	d.probes()
}

func (d *twins) arrive() {
	d.Helper()
	r := d.request()
	last := d.code.lastGone
	said := d.preview(r)
	verdict := d.code.Arrive(d.now, r)
	got := answer{verdict, r.Refusal, r.RetryAfter}
	victims := goneAfter(d.code, last)
	if said != got && (len(victims) == 0 || verdict == headgate.Wait) { // See Preview for several victims.
		d.Fatalf("the preview is %v, and the answer %v:\n%s", said, got, strings.Join(d.trace, "\n"))
	}
	chosen := victims
	if got.reason == headgate.ThrottleFull {
		chosen = append(slices.Clone(victims), r)
	}
	for _, victim := range victims {
		d.fair.leaves(d.twin.find(victim))
	}
	d.log("Arrive", r.Class, r.Tenant, r.Route, r.Deadline.Sub(d.now), got)
	d.same(got, d.twin.Arrive(d.now, r, chosen))
	d.put(r, got)
	d.count(got.String(), d.twin.find(r))
}

// preview says what Arrive will say. That it changes nothing is seen by the comparison of all later answers.
func (d *twins) preview(r *Request) answer {
	mine := Request{Class: r.Class, Tenant: r.Tenant, Route: r.Route, Deadline: r.Deadline}
	verdict, _ := d.code.Preview(d.now, &mine)
	return answer{verdict, mine.Refusal, mine.RetryAfter}
}

// goneAfter lists the requests that the code has reported after the request last.
func goneAfter(t *Throttler, last *Request) []*Request {
	var all []*Request
	for r := t.lastGone; r != nil && r != last; r = r.before {
		all = append(all, r)
	}
	slices.Reverse(all)
	return all
}

// put notes where a request is after an answer.
func (d *twins) put(r *Request, a answer) {
	d.waiting = without(d.waiting, r)
	switch a.verdict {
	case headgate.Allow:
		d.inFlight = append(d.inFlight, r)
	case headgate.Wait:
		d.waiting = append(d.waiting, r)
		d.fair.joins(d.twin.find(r))
	case headgate.Deny:
		d.unused = append(d.unused, r)
	}
}

// next takes all events. Sometimes a request leaves before its event is taken.
func (d *twins) next() {
	d.Helper()
	for {
		r, verdict := d.code.Next(d.now)
		got := answer{verdict: verdict}
		if r != nil {
			got.reason, got.retry = r.Refusal, r.RetryAfter
		}
		was := d.twin.find(r)
		waited := was != nil && was.state == queued
		expected, want := d.twin.Next(d.now, r)
		if r != expected || len(d.twin.faults) > 0 {
			d.Fatalf("%s\nNext returns %s %v, the twin has %s %v %s", d.lastSteps(), nameOf(r), got, nameOf(expected), want, d.twin.faults)
		}
		d.same(got, want)
		if r == nil {
			return
		}
		d.log("Next", r.Class, r.Tenant, r.Route, got)
		if waited {
			d.fairly(was, got.verdict)
		}
		d.put(r, got)
		d.count("next "+got.String(), d.twin.find(r))
		if d.draw(10) == 0 {
			d.leave(&d.waiting)
		}
	}
}

// leave ends any of the requests, twice: the second call does nothing.
func (d *twins) leave(from *[]*Request) {
	if len(*from) == 0 {
		return
	}
	r := (*from)[d.draw(len(*from))]
	e := d.ended()
	d.ends(d.twin.find(r), e)
	d.log("Leave", r.Class, r.Tenant, r.Route, e)
	for range 2 {
		d.code.Leave(d.now, r, e)
		d.twin.Leave(d.now, r, e)
	}
	*from, d.unused = without(*from, r), append(d.unused, r)
}

// ends notes the end of a request for the checks, before the request leaves.
func (d *twins) ends(r *twinRequest, e Ended) {
	switch r.state {
	case queued:
		d.fair.leaves(r)
	case admitted:
		work := e.Work
		if work == 0 {
			work = max(d.now.Sub(r.dispatched), 0)
		}
		d.fair.ends(r, work-r.need.work, d.twin.charged(r, work-r.need.work))
		if !slices.Contains(d.twin.predictor.routes, r.route) {
			d.seen["a forgotten route"]++
		}
	default: // It is refused already.
	}
}

func (d *twins) expire() {
	if len(d.waiting) == 0 {
		return
	}
	r := d.waiting[d.draw(len(d.waiting))]
	was := d.twin.find(r)
	if was.state == queued {
		d.fair.leaves(was)
	}
	d.log("Expire", r.Class, r.Tenant, r.Route)
	for range 2 {
		d.code.Expire(d.now, r)
		d.twin.Expire(d.now, r)
	}
}

// begins says that the answer of a request at the service has begun, or that it is a stream.
func (d *twins) begins() {
	if len(d.inFlight) == 0 {
		return
	}
	r := d.inFlight[d.draw(len(d.inFlight))]
	answered := d.draw(2) == 0
	d.log("Begins", r.Class, r.Tenant, r.Route, answered)
	d.code.Begins(d.now, r, answered)
	d.twin.Begins(d.now, r, answered)
}

// patience compares the waits that all waiting requests have left.
func (d *twins) patience() {
	d.Helper()
	for _, r := range d.waiting {
		d.log("Patience", r.Class, r.Tenant, r.Route)
		if d.twin.hung(d.now) {
			d.seen["patience in a hang"]++
		}
		if got, want := d.code.Patience(d.now, r), d.twin.Patience(d.now, r); got != want {
			d.Fatalf("%s\nthe patience is %v, the twin has %v", d.lastSteps(), got, want)
		}
	}
}

// probes compares the times that probes have left.
func (d *twins) probes() {
	d.Helper()
	for _, r := range d.inFlight {
		whole := d.now%2 == 0
		left, probe := d.code.Probe(d.now, r, whole)
		if probe {
			d.seen["the time of a probe"]++
		}
		if wantLeft, want := d.twin.Probe(d.now, r, whole); left != wantLeft || probe != want {
			d.Fatalf("%s\nthe probe has %v %v, the twin has %v %v", d.lastSteps(), left, probe, wantLeft, want)
		}
	}
}

func (d *twins) configure() {
	c := d.config()
	if err := d.code.Configure(c); err != nil {
		d.Fatal(err)
	}
	d.twin.Configure(c)
	d.log("Configure", c)
}
