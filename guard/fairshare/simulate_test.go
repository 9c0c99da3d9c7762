package fairshare

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/testkit/race"
)

// arrivals is a simulated client. Its attempts are a Poisson process.
type arrivals struct {
	name string
	// mean returns the mean number of attempts in the cycle with the given number.
	mean func(cycle int) float64
	next headgate.Instant
	rand *rand.Rand
}

func steady(mean float64) func(int) float64 { return func(int) float64 { return mean } }

// after advances to the next attempt.
func (a *arrivals) after(from headgate.Instant, w time.Duration) {
	const idle = 1e-3
	m := max(idle, a.mean(int(from/headgate.Instant(w))))
	step := time.Duration(a.rand.ExpFloat64() / m * float64(w))
	if border := from - from%headgate.Instant(w) + headgate.Instant(w); from.Add(step) >= border {
		// Continue with the rate of the next cycle. This is correct because a Poisson process is
		// memoryless.
		a.next = border
		if a.mean(int(border/headgate.Instant(w))) > idle {
			a.next = border.Add(time.Duration(a.rand.ExpFloat64() / a.mean(int(border/headgate.Instant(w))) * float64(w)))
		}
		return
	}
	a.next = from.Add(step)
}

type agenda []*arrivals

func (a *agenda) Len() int           { return len(*a) }
func (a *agenda) Less(i, j int) bool { return (*a)[i].next < (*a)[j].next }
func (a *agenda) Swap(i, j int)      { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }
func (a *agenda) Push(x any)         { *a = append(*a, x.(*arrivals)) }
func (a *agenda) Pop() any           { panic("Pop is not used") } // heap.Interface requires Pop, but the test uses only Fix.

// tally has a simulation's counters for one client in one cycle.
type tally struct{ asked, admitted, within, withinRefused int }

// played is the result of a simulation, by cycle and client.
type played struct {
	capacity int64
	cycles   []map[string]*tally
	// early counts attempts and admissions within the first tenth of a cycle.
	early []map[string]*tally
}

// play runs the clients through a limiter in virtual time. The first fair attempts of a client
// in a cycle are within its default share.
func play(t *testing.T, c Config, fair int, cycles int, clients ...*arrivals) *played {
	t.Helper()
	w := c.Cycle
	start := headgate.Instant(1000 * w)
	l, err := New(start, c)
	if err != nil {
		t.Fatal(err)
	}
	p := &played{capacity: c.Capacity}
	var a agenda
	for i, one := range clients {
		one.rand = rand.New(rand.NewPCG(uint64(i), 7))
		one.after(start, w)
		a = append(a, one)
	}
	heap.Init(&a)
	for {
		one := a[0]
		n := int(one.next.Sub(start) / w)
		if n >= cycles {
			return p
		}
		for len(p.cycles) <= n {
			p.cycles = append(p.cycles, map[string]*tally{})
			p.early = append(p.early, map[string]*tally{})
		}
		d, _ := l.Take(one.next, Request{Client: one.name})
		p.count(n, one, fair, d.Verdict == headgate.Allow, one.next.Sub(start)%w < w/10)
		one.after(one.next, w)
		heap.Fix(&a, 0)
	}
}

func (p *played) count(n int, one *arrivals, fair int, admitted, early bool) {
	tallies := p.cycles[n : n+1]
	if early {
		tallies = []map[string]*tally{p.cycles[n], p.early[n]}
	}
	for _, m := range tallies {
		x := m[one.name]
		if x == nil {
			x = &tally{}
			m[one.name] = x
		}
		x.asked++
		if x.asked <= fair {
			x.within++
		}
		switch {
		case admitted:
			x.admitted++
		case x.asked <= fair:
			x.withinRefused++
		}
	}
}

// summary has the sums over all clients except the flood, after a warm-up of some cycles.
type summary struct {
	within, refused int     // the owners' attempts within their default shares, and how many of them were refused
	used            float64 // used part of the capacity
	most            int64   // the largest number of units that a cycle admitted
}

func (p *played) summarize(warm int) summary {
	var s summary
	var admitted, could int64
	for _, cycle := range p.cycles[warm:] {
		var all, asked int64
		for name, x := range cycle {
			all, asked = all+int64(x.admitted), asked+int64(x.asked)
			if name != "flood" {
				s.within, s.refused = s.within+x.within, s.refused+x.withinRefused
			}
		}
		s.most = max(s.most, all)
		admitted, could = admitted+all, could+min(asked, p.capacity)
	}
	s.used = float64(admitted) / float64(could)
	return s
}

// crew returns n clients with equal means, and one that floods.
func crew(n int, mean, flood float64) []*arrivals {
	all := []*arrivals{{name: "flood", mean: steady(flood)}}
	for i := range n {
		all = append(all, &arrivals{name: fmt.Sprintf("owner-%03d", i), mean: steady(mean)})
	}
	return all
}

// shared returns a Config in which all these clients are known from the start.
func shared(c Config, clients []*arrivals) Config {
	c.Cycle, c.Reservation, c.NewClientsPerCycle, c.ForgetAfter, c.MaxClients = time.Second, 10, 10, 30, 1000
	c.Weights = map[string]int64{}
	for _, a := range clients {
		c.Weights[a.name] = 1
	}
	return c
}

// crowded is a service with a flooding client. It has the mean demand and the default share of
// each owner.
type crowded struct {
	name        string
	owners      int
	mean, flood float64
	fair        int
	cycles      int
}

// TestOwnersAreServed floods a service whose other clients use four fifths of their default
// shares. Under AtOnce almost none of their requests may be refused, and almost no
// capacity may stay unused.
func TestOwnersAreServed(t *testing.T) {
	for _, c := range []crowded{
		{"three owners and a flood of twenty shares", 3, 400, 10_000, 500, 110},
		{"199 owners and a flood of twenty shares", 199, 8, 200, 10, 80},
		{"199 owners and a flood of five times the capacity", 199, 8, 10_000, 10, 80},
		{"owners with a demand equal to their default shares", 3, 500, 10_000, 500, 110},
	} {
		if race.On && c.owners > 3 {
			continue // The test has one goroutine, so the race detector finds nothing.
		}
		c.cycles = race.Fewer(c.cycles, 25)
		for _, division := range share.Divisions()[:race.Fewer(len(share.Divisions()), 1)] {
			clients := crew(c.owners, c.mean, c.flood)
			s := play(t, shared(Config{Capacity: 2000, Division: division}, clients), c.fair, c.cycles, clients...).summarize(10)
			t.Logf("%s, %v: %d of %d requests refused, %.4f of the capacity used", c.name, division, s.refused, s.within, s.used)
			if s.refused*10_000 > s.within || s.used < 0.99 || s.most > 2000 {
				t.Errorf("%s, %v: %+v: want at most 1 of 10,000 refused, 0.99 used, and at most 2,000 per cycle", c.name, division, s)
			}
		}
	}
}

// TestNextCycleRefusesOwners shows why AtOnce exists: under NextCycle a size is the previous
// demand, so an owner is refused whenever its demand grows.
func TestNextCycleRefusesOwners(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	clients := crew(3, 400, 10_000)
	s := play(t, shared(Config{Capacity: 2000, Reclaim: NextCycle}, clients), 500, 110, clients...).summarize(10)
	if part := float64(s.refused) / float64(s.within); part < 0.02 || part > 0.04 || s.most > 2000 {
		t.Errorf("%.4f of the owners' requests are refused and at most %d are admitted per cycle, want about 0.03 and 2,000", part, s.most)
	}
}

// comeback is the result for a client that was idle for ten cycles and returns with its full
// default share, and the cost for other clients.
type comeback struct {
	early, first, second float64 // served parts of its requests in the first tenth of a cycle, in that cycle and in the next
	others               summary
}

func playComeback(t *testing.T, reclaim Reclaim, rounds int) comeback {
	t.Helper()
	const period, idle, fair = 12, 10, 500
	clients := append(crew(2, 400, 10_000), &arrivals{name: "back", mean: func(cycle int) float64 {
		if cycle%period < idle {
			return 0
		}
		return fair
	}})
	p := play(t, shared(Config{Capacity: 2000, Reclaim: reclaim}, clients), fair, period*rounds, clients...)
	var asked, served [3]float64
	add := func(at int, x *tally) {
		if x != nil {
			asked[at], served[at] = asked[at]+float64(x.within), served[at]+float64(x.within-x.withinRefused)
		}
	}
	const start = 1000 // The number of the first simulated cycle.
	for n := range p.cycles {
		if n < period {
			continue
		}
		if at := (start + n) % period; at >= idle {
			add(1+at-idle, p.cycles[n]["back"])
			if at == idle {
				add(0, p.early[n]["back"])
			}
		}
		delete(p.cycles[n], "back")
	}
	return comeback{served[0] / asked[0], served[1] / asked[1], served[2] / asked[2], p.summarize(period)}
}

// TestCapacityComesBack checks that AtOnce returns lent capacity to its owner at once, and not
// at the cost of another owner.
func TestCapacityComesBack(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	const rounds = 10
	got := playComeback(t, AtOnce, rounds)
	t.Logf("%+v", got)
	if got.early < 0.999 || got.first < 0.999 || got.second < 0.999 {
		t.Errorf("under AtOnce %.4f, %.4f and %.4f are served in the first 100 ms, the first cycle and the second; want 1", got.early, got.first, got.second)
	}
	if got.others.refused*1000 > got.others.within {
		t.Errorf("the other owners lose %d of %d requests within their shares, want at most 1 of 1,000", got.others.refused, got.others.within)
	}
	got = playComeback(t, NextCycle, rounds)
	t.Logf("%+v", got)
	if got.first > 0.15 || got.second < 0.9 {
		t.Errorf("under NextCycle %.4f are served in the first cycle and %.4f in the second; want the reservation, then 1", got.first, got.second)
	}
}
