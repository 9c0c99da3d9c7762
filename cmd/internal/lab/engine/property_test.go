package engine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// arrival is one request of a random run.
type arrival struct {
	at    headgate.Instant
	ip    netip.Addr
	cost  int64
	lasts time.Duration
}

func (a *arrival) request() headgate.Request {
	return headgate.Request{Method: "GET", Path: "/", IP: a.ip, Cost: a.cost}
}

// line says what happened to a request, when, and why.
func line(now headgate.Instant, i int, v headgate.Verdict, waited time.Duration) string {
	return fmt.Sprintf("%v: %d %v after %v", now.Sub(start), i, v, waited)
}

// randomRules draws a configuration of one to five rules. Its modelled part says whether the simple model knows all of it.
func randomRules(r *rand.Rand) (text string, modelled bool) {
	modelled = true
	var b strings.Builder
	plain := r.IntN(2) == 0 // Half of the configurations have limits and bans alone, which the model knows.
	if !plain && r.IntN(3) == 0 {
		modelled = false
		fmt.Fprintf(&b, "fair_share: {client: ip, capacity: %d, cycle: 1s}\n", 5+r.IntN(30))
	}
	b.WriteString("rules:\n")
	rules := 1 + r.IntN(5)
	for i := range rules {
		algorithm := headgate.Algorithms()[r.IntN(len(headgate.Algorithms()))]
		if plain && algorithm == headgate.LeakyBucket {
			algorithm = headgate.TokenBucket // The requests of a leaky bucket wait.
		}
		fmt.Fprintf(&b, "  - {name: r%d, key: [%s], algorithm: %s, limits: [\"%d/%ds\"]",
			i, []string{"ip", "all"}[r.IntN(2)], algorithm, 10+r.IntN(200), 1+r.IntN(20))
		bucket := algorithm == headgate.TokenBucket || algorithm == headgate.LeakyBucket
		if algorithm == headgate.SlidingWindow {
			fmt.Fprintf(&b, ", sub_windows: %d", 1+r.IntN(12))
		}
		switch {
		case plain && r.IntN(3) == 0:
			fmt.Fprintf(&b, ", ban: {after: \"%d/10s\", for: 20s}", 20+r.IntN(200))
		case plain:
		case algorithm == headgate.LeakyBucket:
			fmt.Fprintf(&b, ", on_exceed: {action: delay, max_wait: 5s, max_waiters: %d}", 1+r.IntN(3))
			modelled = false
		case bucket && r.IntN(3) == 0:
			fmt.Fprintf(&b, ", on_exceed: {action: delay, max_wait: 5s, max_waiters: %d}", 1+r.IntN(3))
			modelled = false
		case r.IntN(5) == 0:
			fmt.Fprintf(&b, ", ban: {after: \"%d/10s\", for: 20s}", 20+r.IntN(40))
		case r.IntN(4) == 0:
			fmt.Fprintf(&b, ", in_flight: %d", 1+r.IntN(4))
			modelled = false
		}
		b.WriteString("}\n")
	}
	return b.String(), modelled
}

func valid(text string) bool {
	_, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	return err == nil
}

func randomArrivals(r *rand.Rand, n int) []arrival {
	all, at := make([]arrival, n), start
	for i := range all {
		at += headgate.Instant(r.Int64N(int64(200 * time.Millisecond)))
		all[i] = arrival{
			at: at, ip: netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(4))}),
			cost: int64(1 + r.IntN(3)), lasts: time.Duration(r.IntN(1000)) * time.Millisecond,
		}
	}
	return all
}

// byEngine decides with the engine.
func byEngine(t *testing.T, text string, arrivals []arrival) (log []string, verdicts []headgate.Verdict) {
	t.Helper()
	e := made(t, text, engine.Options{Seed: 5})
	verdicts = make([]headgate.Verdict, len(arrivals))
	for i := range arrivals {
		e.Advance(arrivals[i].at)
		a := &engine.Attempt{Request: arrivals[i].request(), Lasts: arrivals[i].lasts}
		a.Decided = func(a *engine.Attempt) {
			if a.Err != nil {
				t.Error(a.Err)
			}
			verdicts[i] = a.Verdict
			log = append(log, line(e.Now(), i, a.Verdict, a.Waited))
		}
		e.Arrive(a)
	}
	e.Finish()
	return log, verdicts
}

// world is virtual time by hand: a list, which is sorted before each step.
type world struct {
	now    headgate.Instant
	number int
	due    []*moment
}

type moment struct {
	at     headgate.Instant
	number int
	do     func()
}

func (w *world) plan(at headgate.Instant, do func()) *moment {
	w.number++
	m := &moment{max(at, w.now), w.number, do}
	w.due = append(w.due, m)
	return m
}

// until does what is due until a time.
func (w *world) until(at headgate.Instant) {
	for {
		slices.SortFunc(w.due, func(a, b *moment) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
		if len(w.due) == 0 || w.due[0].at > at {
			break
		}
		next := w.due[0]
		w.due = w.due[1:]
		w.now = next.at
		if next.do != nil {
			next.do()
		}
	}
	w.now = max(w.now, at)
}

// Now implements guard.Clock.
func (w *world) Now() time.Duration { return w.now.Sub(start) }

// Alarm implements guard.Clock.
func (w *world) Alarm(ring func()) guard.Alarm { return &handAlarm{world: w, ring: ring} }

type handAlarm struct {
	world *world
	ring  func()
	set   *moment
}

func (a *handAlarm) Reset(d time.Duration) bool {
	was := a.Stop()
	a.set = a.world.plan(a.world.now.Add(d), func() { a.set = nil; a.ring() })
	return was
}

func (a *handAlarm) Stop() bool {
	was := a.set != nil
	if was {
		a.set.do, a.set = nil, nil
	}
	return was
}

// byHand decides with a guard that the test calls itself.
func byHand(t *testing.T, text string, arrivals []arrival) (log []string) {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{now: start}
	clock := func() headgate.Instant { return w.now }
	store, err := memory.New(memory.Config{Clock: clock}) // Its places are secret: no decision depends on them.
	if err != nil {
		t.Fatal(err)
	}
	described, err := c.GuardConfig(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	described.Clock, described.State = clock, guard.NewStateAt(w)
	g, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	for i := range arrivals {
		w.until(arrivals[i].at)
		request, ticket := arrivals[i].request(), &guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), &request, ticket); err != nil {
			t.Fatal(err)
		}
		decided := func(v headgate.Verdict) {
			log = append(log, line(w.now, i, v, w.now.Sub(arrivals[i].at)))
			if v != headgate.Allow {
				ticket.Done(guard.Outcome{End: guard.Refused})
				return
			}
			if ticket.Forward() && arrivals[i].lasts > 0 {
				w.plan(w.now.Add(arrivals[i].lasts), func() { ticket.Done(guard.Outcome{}) })
				return
			}
			ticket.Done(guard.Outcome{})
		}
		if ticket.Answer.Verdict == headgate.Wait {
			ticket.WaitFunc(decided)
			continue
		}
		decided(ticket.Answer.Verdict)
	}
	w.until(start.Add(1000 * time.Hour))
	return log
}

// byModel decides by the definitions of the algorithms: a request passes if no rule bans it and every rule has capacity, and only then
// counts for the limits.
func byModel(t *testing.T, text string, arrivals []arrival) (verdicts []headgate.Verdict) {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	keys, bans := map[string]twin.Key{}, map[string]twin.Key{}
	for _, a := range arrivals {
		var all []twin.Key
		verdict := headgate.Allow
		for i := range c.Rules {
			r := &c.Rules[i]
			key := r.Name
			if r.Key[0].String() == "ip" {
				key += a.ip.String()
			}
			if keys[key] == nil {
				keys[key], bans[key] = twin.New(r.Policies[0]), twin.New(check.BanPolicy(r, r.Policies))
			}
			if r.Ban.For > 0 && bans[key].Do(a.at, a.cost, headgate.Take).Verdict != headgate.Allow {
				verdict = headgate.Deny // Every attempt counts, those that are refused too.
			}
			all = append(all, keys[key])
		}
		for _, k := range all {
			if k.Do(a.at, a.cost, headgate.Peek).Verdict != headgate.Allow {
				verdict = headgate.Deny
			}
		}
		for _, k := range all {
			if verdict == headgate.Allow {
				k.Do(a.at, a.cost, headgate.Take)
			}
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// mostRandom is the number of requests of TestEngineIsTheGuard. The test with the tag soak has ten times as many.
const mostRandom = 100_000

// TestEngineIsTheGuard: over random configurations, the engine and a guard that is called by hand decide the same at the same virtual
// times, bans, delays with few places, requests in flight and fair share included. A simple model agrees where it knows all rules.
func TestEngineIsTheGuard(t *testing.T) {
	t.Parallel()
	engineIsTheGuard(t, race.Fewer(mostRandom, mostRandom/20), 1)
}

func engineIsTheGuard(t *testing.T, requests int, seed uint64) {
	t.Helper()
	const each = 500
	r := rand.New(rand.NewPCG(seed, 2))
	waited, refused, modelled := 0, 0, 0
	for range requests / each {
		text, simple := randomRules(r)
		for !valid(text) { // A rule may be useless beside another one, which is a fault.
			text, simple = randomRules(r)
		}
		arrivals := randomArrivals(r, each)
		log, verdicts := byEngine(t, text, arrivals)
		if hand := byHand(t, text, arrivals); !slices.Equal(log, hand) {
			at := 0
			for at < min(len(log), len(hand)) && log[at] == hand[at] {
				at++
			}
			t.Fatalf("%s\nline %d differs:\nengine %q\nhand   %q", text, at, log[at:min(at+3, len(log))], hand[at:min(at+3, len(hand))])
		}
		if again, _ := byEngine(t, text, arrivals); !slices.Equal(log, again) {
			t.Fatalf("%s\ntwo runs differ", text)
		}
		for _, l := range log {
			if strings.Contains(l, "deny") {
				refused++
			} else if !strings.HasSuffix(l, " 0s") {
				waited++
			}
		}
		if !simple {
			continue
		}
		modelled++
		for i, v := range byModel(t, text, arrivals) {
			if v != verdicts[i] {
				t.Fatalf("%s\nrequest %d of %s with cost %d at %v: %v, and the model says %v", text, i, arrivals[i].ip, arrivals[i].cost,
					arrivals[i].at.Sub(start), verdicts[i], v)
			}
		}
	}
	t.Logf("%d requests: %d waited, %d were refused; the model knew %d of %d configurations", requests, waited, refused, modelled, requests/each)
	if waited == 0 || refused == 0 || modelled == 0 {
		t.Error("the random configurations leave something out")
	}
}

// TestEvictionsRepeat: with more keys than memory holds, two runs evict the same keys, and decide the same.
func TestEvictionsRepeat(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (sum string, evictions uint64) {
		e := made(t, `rules: [{name: a, key: [ip], algorithm: sliding_window, limits: [3/h]}]`, engine.Options{Seed: seed, MaxMemory: 64 << 10})
		r := rand.New(rand.NewPCG(3, 4))
		var b strings.Builder
		a := &engine.Attempt{}
		for range race.Fewer(50_000, 10_000) {
			n := r.IntN(5000)
			a.Request = headgate.Request{Method: "GET", Path: "/", IP: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})}
			e.Advance(e.Now().Add(time.Duration(r.IntN(1000)) * time.Millisecond))
			e.Arrive(a)
			b.WriteString(a.Verdict.String()[:1])
		}
		return b.String(), e.Evictions()
	}
	first, evicted := run(1)
	if again, evictedAgain := run(1); again != first || evictedAgain != evicted || evicted == 0 {
		t.Errorf("two runs differ, with %d and %d evictions", evicted, evictedAgain)
	}
	if other, _ := run(2); other == first {
		t.Error("another seed evicts the same keys")
	}
}
