package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// drive makes random calls of a Throttler, and checks after each what must always hold.
type drive struct {
	*testing.T

	random   *rand.Rand
	under    *Throttler
	now      headgate.Instant
	waiting  map[*Request]bool
	inFlight map[*Request]bool
}

// TestAlways makes random calls with clocks that step back, limits that change midway, and
// requests that leave at any time.
func TestAlways(t *testing.T) {
	for seed := range uint64(100) {
		d := &drive{
			T: t, random: rand.New(rand.NewPCG(seed, 2)), now: headgate.Instant(time.Hour),
			waiting: map[*Request]bool{}, inFlight: map[*Request]bool{},
		}
		d.under = d.made(randomConfig(d.random.IntN))
		for range 400 {
			d.step()
			d.check(seed)
		}
		d.empty(seed)
	}
}

func (d *drive) made(c Config) *Throttler {
	d.Helper()
	under, err := New(c)
	if err != nil {
		d.Fatal(err)
	}
	return under
}

// randomConfig makes a configuration. draw returns a number below n.
func randomConfig(draw func(n int) int) Config {
	c := Config{Deadline: 100 * time.Millisecond, MaxWaiters: 1 + draw(20), MaxTenants: 1 + draw(8), MaxRoutes: 1 + draw(4)}
	if draw(2) == 0 {
		c.Concurrency = 1 + draw(5)
		c.Search = Search{Min: 1, Max: 5, Apply: draw(2) == 0}
	} else {
		c.CPUInFlight = time.Duration(1 + draw(int(50*time.Millisecond)))
	}
	return c
}

// step moves the clock, mostly forwards, and makes one call.
func (d *drive) step() {
	if d.random.IntN(20) == 0 {
		d.now = d.now.Add(-time.Duration(d.random.IntN(int(50 * time.Millisecond))))
	}
	d.now = d.now.Add(time.Duration(d.random.IntN(int(5 * time.Millisecond))))
	switch n := d.random.IntN(100); {
	case n < 60:
		d.arrive()
	case n < 90:
		d.leave(d.inFlight)
	case n < 94:
		d.leave(d.waiting)
	case n < 98:
		for r := range d.waiting {
			d.under.Expire(d.now, r)
			d.under.Expire(d.now, r) // Does nothing.
			break
		}
	default:
		if err := d.under.Configure(randomConfig(d.random.IntN)); err != nil {
			d.Fatal(err)
		}
	}
	d.next()
}

func (d *drive) arrive() {
	r := &Request{
		Class:  Class(d.random.IntN(ClassCount)),
		Tenant: fmt.Sprint("tenant ", d.random.IntN(10)), Route: fmt.Sprint("/", d.random.IntN(5)),
		Deadline: d.now.Add(time.Duration(d.random.IntN(int(200*time.Millisecond)) - int(10*time.Millisecond))),
	}
	d.put(r, d.under.Arrive(d.now, r))
}

// put notes where a request is after a verdict.
func (d *drive) put(r *Request, v headgate.Verdict) {
	delete(d.waiting, r)
	switch v {
	case headgate.Allow:
		d.inFlight[r] = true
	case headgate.Wait:
		d.waiting[r] = true
	case headgate.Deny:
		if !r.Refusal.Overloaded() || r.RetryAfter < 0 {
			d.Fatalf("a refusal has the reason %v and a RetryAfter of %v", r.Refusal, r.RetryAfter)
		}
	}
}

// next drains the events. Sometimes a request leaves before its event is taken.
func (d *drive) next() {
	for r, v := d.under.Next(d.now); r != nil; r, v = d.under.Next(d.now) {
		if !d.waiting[r] {
			d.Fatalf("Next gives %v to a request that does not wait", v)
		}
		d.put(r, v)
		if d.random.IntN(10) == 0 {
			d.leave(d.waiting)
		}
	}
}

func (d *drive) leave(from map[*Request]bool) {
	for r := range from { // Any of them: a map has no order, and checks do not depend on it.
		e := Ended{Work: time.Duration(d.random.IntN(int(30 * time.Millisecond))), Lesson: Lesson(d.random.IntN(3))}
		d.under.Leave(d.now, r, e)
		d.under.Leave(d.now, r, e) // Does nothing.
		delete(from, r)
		return
	}
}

// check checks the bounds, the sums, and that no request waits while the service has room.
func (d *drive) check(seed uint64) {
	d.Helper()
	l := d.under.Load()
	queued := 0
	for _, n := range l.Queued {
		queued += n
	}
	if queued != len(d.waiting) || l.InFlight != len(d.inFlight) {
		d.Fatalf("seed %d: %d queued and %d in flight, want %d and %d", seed, queued, l.InFlight, len(d.waiting), len(d.inFlight))
	}
	if first := d.under.queue.first(); first != nil && d.under.room(d.now, first) {
		d.Fatalf("seed %d: a request waits while the service has room", seed)
	}
	if n := len(d.under.tenants.known.entries); n > d.under.tenants.known.most {
		d.Fatalf("seed %d: %d tenants", seed, n)
	}
}

// empty ends all requests, and checks that nothing of them is left.
func (d *drive) empty(seed uint64) {
	d.Helper()
	for len(d.inFlight)+len(d.waiting) > 0 {
		d.leave(d.inFlight)
		d.leave(d.waiting)
		d.next()
	}
	l := d.under.Load()
	if l.InFlight != 0 || l.CPU != 0 || l.QueuedWork != 0 || l.Queued != [ClassCount]int{} {
		d.Fatalf("seed %d: left behind: %+v", seed, l)
	}
	for _, e := range d.under.tenants.known.entries {
		if who := &e.value; who.requests != 0 || who.queued != 0 || who.queuedCrit != 0 {
			d.Fatalf("seed %d: %s keeps %d requests", seed, e.key, who.requests)
		}
	}
}
