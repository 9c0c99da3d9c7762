package fairshare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/testkit/race"
)

// simSteps is the number of steps of a simulated cycle.
const simSteps = 200

// demand returns the number of requests of known client i in step n, given its default share.
type demand func(r *rand.Rand, i, n int, fair int64) int64

// newcomerCase is a simulation of newcomers beside known clients.
type newcomerCase struct {
	says      string
	known     int
	capacity  int64
	demand    demand
	newcomers int
	gap       [2]int  // steps between two newcomers, at least and at most
	polite    bool    // a newcomer sends its share evenly; otherwise a burst of two shares every other step
	weight    int64   // the newcomers are in Weights; 0 means trusted names
	reclaim   Reclaim // of the limiter
	// conflict reports that not all newcomers can be admitted in time, because the capacity and one
	// default share are used.
	conflict bool
	// spread reports that the known clients' own use of a cycle's length can exceed the
	// capacity, across the end of a cycle.
	spread bool
}

// newcomerCases returns the cases of docs/decisions/0035.
func newcomerCases() []newcomerCase {
	return []newcomerCase{
		{says: "1 newcomer, bursts at starts, 40 among 4", known: 4, capacity: 40, demand: burstAtStart, newcomers: 1},
		{says: "1 newcomer, bursts at starts, 2,000 among 20", known: 20, capacity: 2000, demand: burstAtStart, newcomers: 1},
		{says: "1 newcomer that sends evenly, bursts at starts", known: 4, capacity: 40, demand: burstAtStart, newcomers: 1, polite: true},
		{says: "1 newcomer, all flood", known: 4, capacity: 40, demand: flood, newcomers: 1},
		{says: "1 newcomer, bursts at starts, next_cycle", known: 4, capacity: 40, demand: burstAtStart, newcomers: 1, reclaim: NextCycle},
		{says: "1 newcomer, one client floods", known: 4, capacity: 400, demand: oneFloods, newcomers: 1, spread: true},
		{says: "1 newcomer, steady load of 100 %", known: 4, capacity: 400, demand: steadily(1), newcomers: 1, spread: true},
		{says: "1 newcomer, flapping clients", known: 4, capacity: 40, demand: flapping, newcomers: 1, spread: true},
		{says: "1 newcomer with weight 3", known: 4, capacity: 80, demand: burstAtStart, newcomers: 1, weight: 3, spread: true},
		{says: "5 newcomers at once, 40 among 4", known: 4, capacity: 40, demand: burstAtStart, newcomers: 5},
		{says: "20 newcomers at once, 2,000 among 20", known: 20, capacity: 2000, demand: burstAtStart, newcomers: 20},
		{says: "20 newcomers at once, steady load of 80 %", known: 20, capacity: 2000, demand: steadily(0.8), newcomers: 20, spread: true},
		{says: "5 newcomers within a tenth", known: 4, capacity: 400, demand: burstAtStart, newcomers: 5, gap: [2]int{1, 4}},
		{says: "5 newcomers, 0.1 to 0.4 cycles apart", known: 4, capacity: 400, demand: burstAtStart, newcomers: 5, gap: [2]int{20, 80}, conflict: true},
		{says: "the same, and they send evenly", known: 4, capacity: 400, demand: burstAtStart, newcomers: 5, gap: [2]int{20, 80}, conflict: true, polite: true},
		{says: "5 newcomers, 0.5 to 1 cycles apart", known: 4, capacity: 400, demand: burstAtStart, newcomers: 5, gap: [2]int{100, 200}, conflict: true, spread: true},
		{says: "5 newcomers, 1.02 to 2 cycles apart", known: 4, capacity: 400, demand: burstAtStart, newcomers: 5, gap: [2]int{204, 400}},
		{says: "the same, steady load of 80 %", known: 4, capacity: 400, demand: steadily(0.8), newcomers: 5, gap: [2]int{204, 400}, spread: true},
	}
}

func burstAtStart(_ *rand.Rand, _, n int, fair int64) int64 {
	if n%simSteps == 0 {
		return fair
	}
	return 1
}

func flood(*rand.Rand, int, int, int64) int64 { return 2 }

func steadily(part float64) demand {
	return func(r *rand.Rand, _, _ int, fair int64) (n int64) {
		for p := part * float64(fair) / simSteps; p > 0; p-- {
			if r.Float64() < p {
				n++
			}
		}
		return n
	}
}

func oneFloods(r *rand.Rand, i, n int, fair int64) int64 {
	if i == 0 {
		return 2
	}
	return steadily(0.8)(r, i, n, fair)
}

func flapping(r *rand.Rand, i, n int, fair int64) int64 {
	if (n/simSteps+i)%3 == 0 {
		return 0
	}
	return burstAtStart(r, i, n, fair)
}

// arrived is what one newcomer got: the steps until its first admitted request, and its units within a
// cycle's length of its arrival.
type arrived struct {
	step, first, sent int
	got, share        int64
}

// arriving is a running simulation.
type arriving struct {
	newcomerCase

	r             *rand.Rand
	l             *Limiter
	units         []admittedAt
	arrivals      []arrived
	within, wrong int // requests of the known clients within their shares, and how many are refused
	asked         []int64
}

// newShare is the default share of one newcomer beside the known clients.
func (s *newcomerCase) newShare() int64 {
	w := max(1, s.weight)
	all := int64(s.known) + w
	return (s.capacity*w + all - 1) / all
}

func (s *newcomerCase) run(t *testing.T, seed uint64, credit bool) *arriving {
	t.Helper()
	a := &arriving{newcomerCase: *s, r: rand.New(rand.NewPCG(seed, 11)), arrivals: make([]arrived, s.newcomers), asked: make([]int64, s.known)}
	c := Config{
		Capacity: s.capacity, Cycle: time.Second, Reservation: 10, NewClientsPerCycle: 64, ForgetAfter: 30, MaxClients: 1000,
		TrustNames: s.weight == 0, Reclaim: s.reclaim, Weights: map[string]int64{},
	}
	step := 5*simSteps + a.r.IntN(simSteps)
	for i := range a.arrivals {
		a.arrivals[i] = arrived{step: step, first: -1}
		step += s.gap[0] + a.r.IntN(1+s.gap[1]-s.gap[0])
		if s.weight > 0 {
			c.Weights[fmt.Sprint("new-", i)] = s.weight
		}
	}
	var err error
	if a.l, err = New(0, c); err != nil {
		t.Fatal(err)
	}
	if !credit {
		a.l.credit.used = share.MaxCapacity // The credit is used up.
	}
	for n := range step + 3*simSteps {
		if n%simSteps == 0 {
			clear(a.asked)
		}
		for _, i := range a.r.Perm(s.known + s.newcomers) {
			if i < s.known {
				a.sendKnown(i, n)
			} else {
				a.sendNew(i-s.known, n)
			}
		}
	}
	return a
}

func (a *arriving) take(at headgate.Instant, name string) bool {
	d, _ := a.l.Take(at, Request{Client: name})
	if d.Verdict != headgate.Allow {
		return false
	}
	if at >= warmSteps*headgate.Instant(simStep) {
		a.units = append(a.units, admittedAt{at, 1})
	}
	return true
}

const (
	simStep = time.Second / simSteps
	// warmSteps are not counted: the known clients are newcomers then.
	warmSteps = 3 * simSteps
)

func (a *arriving) sendKnown(i, n int) {
	name, fair := fmt.Sprint("known-", i), a.capacity/int64(a.known)
	if x := a.l.current.Load().find(name); x != nil {
		fair = x.fair.Load()
	}
	for range a.demand(a.r, i, n, fair) {
		a.asked[i]++
		within := a.asked[i] <= fair && n >= warmSteps
		if within {
			a.within++
		}
		if !a.take(headgate.Instant(simStep)*headgate.Instant(n), name) && within {
			a.wrong++
		}
	}
}

func (a *arriving) sendNew(i, n int) {
	x, name := &a.arrivals[i], fmt.Sprint("new-", i)
	after := n - x.step
	requests := 0
	switch {
	case after < 0:
		return
	case a.polite:
		requests = int(a.newShare())*(after+1)/simSteps - x.sent
		if after == 0 {
			requests = 1
		}
		x.sent += max(0, requests)
	case after%2 == 0:
		requests = 2 * int(a.newShare())
	}
	for range requests {
		if !a.take(headgate.Instant(simStep)*headgate.Instant(n), name) {
			continue
		}
		if x.first < 0 {
			x.first = after
		}
		if after < simSteps {
			x.got++
		}
	}
	if after == simSteps-1 {
		x.share = fairOf(a.l, name)
	}
}

// arrivalSum is the result of several seeds.
type arrivalSum struct {
	newcomers, inTime int
	worst             float64 // longest time to the first admitted request, in cycles
	least             float64 // smallest part of its share that a newcomer got within a cycle of its arrival
	most              int64   // most units in an interval of a cycle's length
	wrong, within     int
}

func (s *newcomerCase) sum(t *testing.T, seeds uint64, credit bool) arrivalSum {
	t.Helper()
	sum := arrivalSum{least: 1}
	for seed := range seeds {
		a := s.run(t, seed, credit)
		for _, x := range a.arrivals {
			sum.newcomers++
			if x.first >= 0 && x.first <= simSteps/arrivalPart {
				sum.inTime++
			}
			sum.worst = max(sum.worst, float64(x.first)/simSteps)
			sum.least = min(sum.least, float64(x.got)/float64(max(1, x.share)))
		}
		sum.most = max(sum.most, mostIn(a.units, time.Second))
		sum.wrong, sum.within = sum.wrong+a.wrong, sum.within+a.within
	}
	return sum
}

// row is the line of a case in docs/decisions/0035.
func (s *arrivalSum) row(says string, capacity, one int64) string {
	return fmt.Sprintf("| %s | %.0f %% | %.2f | %.0f %% | %.2f | %.3f %% |", says, 100*float64(s.inTime)/float64(s.newcomers), s.worst, 100*s.least,
		float64(s.most-capacity)/float64(one), 100*float64(s.wrong)/float64(max(1, s.within)))
}

// TestArrivals simulates newcomers with and without the credit. With it, newcomers are admitted within a
// tenth of a cycle and get their share, and no interval of a cycle's length has more than one
// default share beyond what the known clients alone can use. The log has the figures.
func TestArrivals(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	const seeds = 4
	all := newcomerCases()
	for i := range all {
		s := &all[i]
		before, got := s.sum(t, seeds, false), s.sum(t, seeds, true)
		one := s.newShare()
		t.Log(before.row(s.says+", without credit", s.capacity, one))
		t.Log(got.row(s.says, s.capacity, one))
		if !s.conflict && (got.inTime < got.newcomers || got.least < 0.9) {
			t.Errorf("%s: %+v: want all newcomers in time, with nine tenths of their shares", s.says, got)
		}
		most := s.capacity + one
		if s.spread {
			most = before.most + one
		}
		if got.most > most {
			t.Errorf("%s: %d units in an interval of a cycle's length, want at most %d", s.says, got.most, most)
		}
		if got.wrong > before.wrong+got.within/1000 {
			t.Errorf("%s: %d of %d requests of known clients within their shares are refused, and %d without credit", s.says, got.wrong, got.within, before.wrong)
		}
	}
}
