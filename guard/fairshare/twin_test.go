package fairshare

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// twin models NextCycle for pinned clients with plain counters. A request passes if its cost
// and the client's usage stay within the client's size. The sizes follow from the demands
// of the last cycle.
type twin struct {
	config         Config
	start          headgate.Instant
	number         uint64
	admitted, last int64
	clients        []*twinClient // by name
}

type twinClient struct {
	share.Client // Demand is the demand of the last cycle.

	fair, size, used, refused int64
	admittedTotal             uint64
	refusedTotal              uint64
}

func newTwin(now headgate.Instant, c Config) *twin {
	w := &twin{config: c, number: 1, start: now - now%headgate.Instant(c.Cycle)}
	for name, weight := range c.Weights {
		w.clients = append(w.clients, &twinClient{Client: share.Client{Name: name, Weight: weight}})
	}
	slices.SortFunc(w.clients, func(a, b *twinClient) int { return cmp.Compare(a.Name, b.Name) })
	w.divide()
	return w
}

func (w *twin) divide() {
	list := make([]share.Client, len(w.clients))
	for i, c := range w.clients {
		list[i] = c.Client
	}
	terms := share.Terms{Division: w.config.Division, Capacity: w.config.Capacity, Reservation: w.config.Reservation}
	sizes, fair := terms.Divide(list), share.Default(w.config.Capacity, list)
	for i, c := range w.clients {
		c.size, c.fair, c.used, c.refused = sizes[i], fair[i], 0, 0
	}
}

// follow starts the cycle that contains now. The demands are those of the previous cycle, or 0
// if that cycle was idle.
func (w *twin) follow(now headgate.Instant) {
	passed := int64(now-w.start) / int64(w.config.Cycle)
	if passed == 0 {
		return
	}
	for _, c := range w.clients {
		c.Demand = 0
		if passed == 1 {
			c.Demand = c.used + c.refused
		}
	}
	w.last = 0
	if passed == 1 {
		w.last = w.admitted
	}
	w.admitted, w.number = 0, w.number+uint64(passed)
	w.start += headgate.Instant(passed) * headgate.Instant(w.config.Cycle)
	w.divide()
}

func (w *twin) take(now headgate.Instant, name string, cost int64) headgate.Decision {
	w.follow(now)
	c := w.client(name)
	d := headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverShare, Limit: c.size, At: now}
	d.ResetAfter = w.start.Add(w.config.Cycle).Sub(now)
	switch {
	case c.used+cost <= c.size:
		c.used += cost
		c.admittedTotal += uint64(cost)
		w.admitted += cost
		d.Verdict, d.Reason = headgate.Allow, headgate.WithinLimit
	case cost > w.config.Capacity:
		cost = max(1, w.config.Capacity) // A larger cost counts as the whole capacity.
		d.Reason = headgate.Never
		fallthrough
	default:
		c.refused += cost
		c.refusedTotal += uint64(cost)
	}
	d.Remaining = c.size - c.used
	return d
}

func (w *twin) client(name string) *twinClient {
	i, _ := slices.BinarySearchFunc(w.clients, name, func(c *twinClient, name string) int { return cmp.Compare(c.Name, name) })
	return w.clients[i]
}

func (w *twin) shares() Shares {
	s := Shares{
		Cycle: w.number, Start: w.start, End: w.start.Add(w.config.Cycle), Length: w.config.Cycle,
		Capacity: w.config.Capacity, Admitted: w.admitted, LastAdmitted: w.last,
	}
	if w.number > 1 {
		s.LastCapacity = s.Capacity
	}
	for _, c := range w.clients {
		s.Clients = append(s.Clients, Share{
			Client: c.Name, Weight: c.Weight, Default: c.fair, Demand: c.Demand, Size: c.size,
			Borrowed: max(0, c.size-c.fair), Lent: max(0, c.fair-c.size),
			Seen: c.used + c.refused, Admitted: c.used, Refused: c.refused,
			AdmittedTotal: c.admittedTotal, AdmittedCounter: c.admittedTotal, RefusedTotal: c.refusedTotal, Pinned: true,
		})
	}
	return s
}

// TestTwin compares NextCycle with its twin, decision by decision.
func TestTwin(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := Config{
			Capacity: [...]int64{0, 1, 5, 40, 1000, share.MaxCapacity}[r.IntN(6)], Cycle: [...]time.Duration{LeastCycle, time.Second, MostCycle}[r.IntN(3)],
			Reservation: r.IntN(101), Division: share.Divisions()[r.IntN(2)], Reclaim: NextCycle, Weights: map[string]int64{},
			NewClientsPerCycle: r.IntN(3), ForgetAfter: 1 + r.IntN(3), MaxClients: 20,
		}
		n := 1 + r.IntN(20)
		for i := range n {
			c.Weights[fmt.Sprint("client-", i)] = 1 + r.Int64N(3)
		}
		now := headgate.Instant(r.Int64N(int64(time.Hour)))
		l, err := New(now, c)
		if err != nil {
			t.Fatal(err)
		}
		noNewcomers(l)
		model := newTwin(now, c)
		for i := range 2000 {
			now = now.Add(twinPause(r, c.Cycle))
			if r.IntN(20) == 0 {
				model.follow(now)
				compareShares(t, seed, l.Shares(now), model.shares())
				continue
			}
			name, cost := fmt.Sprint("client-", min(r.IntN(n), r.IntN(n))), 1+r.Int64N(1+r.Int64N(10))
			got, _ := l.Take(now, Request{Client: name, Cost: cost})
			want := model.take(now, name, cost)
			checkRetry(t, &got, c.Cycle)
			got.RetryAfter = 0
			if got != want {
				t.Fatalf("seed %d, decision %d at %d, %s for %d:\n got %+v\nwant %+v", seed, i, now, name, cost, got, want)
			}
		}
	}
}

// twinPause returns pauses that give some hundred requests per cycle, and sometimes none.
func twinPause(r *rand.Rand, w time.Duration) time.Duration {
	if r.IntN(200) == 0 {
		return time.Duration(r.Int64N(4 * int64(w)))
	}
	return time.Duration(r.Int64N(int64(w) / 100))
}

// checkRetry checks that RetryAfter points into the first half of the next cycle, or is 0 for
// a request that can never pass.
func checkRetry(t *testing.T, d *headgate.Decision, w time.Duration) {
	t.Helper()
	if d.Verdict == headgate.Allow || d.Reason == headgate.Never {
		if d.RetryAfter != 0 {
			t.Fatalf("%v, %v with RetryAfter %v", d.Verdict, d.Reason, d.RetryAfter)
		}
		return
	}
	if d.RetryAfter < d.ResetAfter || d.RetryAfter >= d.ResetAfter+w/2 || d.RetryAfter <= 0 {
		t.Fatalf("RetryAfter %v: want from %v to %v", d.RetryAfter, d.ResetAfter, d.ResetAfter+w/2)
	}
}

func compareShares(t *testing.T, seed uint64, got, want Shares) {
	t.Helper()
	for i := range got.Clients {
		got.Clients[i].Lasting = false // All clients are pinned, so Lasting has no effect.
	}
	if !slices.Equal(got.Clients, want.Clients) {
		t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, got.Clients, want.Clients)
	}
	got.Clients, want.Clients = nil, nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, got, want)
	}
}
