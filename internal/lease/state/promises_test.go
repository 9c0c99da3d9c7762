package state

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// way is the sum of the one-way trips of all levels of a plan, and ticks that of their ticks.
const (
	way   = 56 * ms
	ticks = 3 * 20 * ms
)

// TestReduction lowers the capacity of a tree with three levels. Holders that can be reached are within it after two one-way
// trips and the ticks of their levels. The leases of the others end at the latest with the longest lease.
func TestReduction(t *testing.T) {
	reduce(t, &plan{seed: 3, parents: 2, leaves: 4, clients: 400})
}

func reduce(t *testing.T, p *plan) {
	t.Helper()
	w, capacity := p.build(t)
	w.run(10 * sec)
	for range p.clients / 10 {
		w.die(w.rand.IntN(len(w.clients)))
	}
	root, reduced := w.nodes[0], capacity*6/10
	terms := root.config.Resources[0]
	terms.Capacity = reduced
	if err := root.server.Configure(w.now, []Resource{terms}, root.config.Callers); err != nil {
		t.Fatal(err)
	}
	root.flush()
	var reached, all headgate.Instant // the last times above the capacity
	look := func() {
		out := w.out()
		if out > reduced {
			all = w.now
		}
		for _, c := range w.dead {
			out -= c.held.Amount(w.now)
		}
		if out > reduced {
			reached = w.now
		}
	}
	for ; w.now < 11*sec; w.run(w.now + 2*ms) {
		look()
	}
	every(w, 20*ms, look)
	w.run(50 * sec)
	t.Logf("the holders that can be reached are within it after %v, and all after %v", reached.Sub(10*sec), all.Sub(10*sec))
	if reached > 10*sec+2*way+ticks || reached == 0 {
		t.Errorf("the holders that can be reached need %v, want %v", reached.Sub(10*sec), (2*way + ticks).Sub(0))
	}
	if longest := headgate.Instant(counted(15 * time.Second)); all > 10*sec+longest || all <= reached {
		t.Errorf("all holders need %v, want more than the reachable ones and at most %v", all.Sub(10*sec), longest.Sub(0))
	}
}

// TestEquilibrium draws all demands of a tree again. After four trips and four ticks of each level, at most 1 % is misplaced.
func TestEquilibrium(t *testing.T) {
	balance(t, &plan{seed: 4, parents: 2, leaves: 4, clients: 1000})
}

func balance(t *testing.T, p *plan) {
	t.Helper()
	w, capacity := p.build(t)
	misplaced := func() float64 {
		_, _, amount := w.compare(capacity)
		return float64(amount) / float64(capacity)
	}
	for shift := 10 * sec; shift < 60*sec; shift += 10 * sec {
		w.run(shift)
		for _, c := range w.clients {
			c.want(p.draw(w))
		}
		before := misplaced()
		w.run(shift + 4*way + 4*ticks)
		at := misplaced()
		w.run(shift + 2*sec)
		t.Logf("misplaced: %.2f%%, after 4 trips and ticks %.2f%%, after 2 s %.2f%%", 100*before, 100*at, 100*misplaced())
		if at > 0.01 || before < 0.1 {
			t.Errorf("%.2f%% is misplaced after 4 trips and ticks, want 1%% of more than 10%% before", 100*at)
		}
	}
}

// TestDyingClients: clients end without a message. What they had is lost until their leases end: about lease / mean life.
func TestDyingClients(t *testing.T) {
	const clients, life = 200, 600 * sec
	w := newWorld(t, 5)
	root := w.node("root", nil, 0, config(Resource{Algorithm: MaxMin, Capacity: clients * perClient}))
	for range clients {
		w.join(root, ms, 2*perClient)
	}
	every(w, life/clients, func() {
		w.die(w.rand.IntN(len(w.clients)))
		w.join(root, ms, 2*perClient)
	})
	var lost, samples int64
	every(w, sec, func() {
		if w.out(); w.now > 60*sec {
			samples++
			for _, c := range w.dead {
				lost += c.held.Amount(w.now)
			}
		}
	})
	w.run(400 * sec)
	part := float64(lost) / float64(samples*clients*perClient)
	expected := float64(30*sec) / float64(life)
	t.Logf("%.2f%% is lost, lease / life is %.2f%%", 100*part, 100*expected)
	if part < 0.75*expected || part > 1.1*expected {
		t.Errorf("%.2f%% of the capacity is lost, want about %.2f%%", 100*part, 100*expected)
	}
}

// spender spends a lease: it saves units for 0.1 s, or one unit. A larger lease begins without more saved units, and a smaller
// one clips them.
type spender struct {
	saved float64
	small bool // below 10 units a second
}

// slot is the time between two looks at a lease.
const slot = 10 * ms

// spend returns the units that are spent in a slot.
func (s *spender) spend(amount int64, wants bool) float64 {
	rate := float64(amount) / unit
	s.small = rate < 10
	if s.saved = min(s.saved+rate*float64(slot)/float64(sec), max(1, rate/10)); rate == 0 {
		s.saved = 0
	}
	if !wants {
		return 0
	}
	units := float64(int64(s.saved + 1e-9))
	s.saved -= units
	return units
}

// TestSpent has holders that spend as much as they can, after pauses, while demands shift, messages are lost and servers fail. In
// any time T they spend at most capacity * (T + 0.1 s), and one unit for each holder below 10 units a second in that time.
func TestSpent(t *testing.T) {
	p := plan{seed: 6, parents: 2, leaves: 4, clients: 30, loss: 0.05}
	w, capacity := p.build(t)
	spenders := map[*client]*spender{}
	spent, small := []float64{0}, [][]int32{make([]int32, len(w.clients))} // sums, for each slot
	for _, c := range w.clients {
		spenders[c] = new(spender)
	}
	every(w, slot, func() {
		sum, counts := spent[len(spent)-1], append([]int32(nil), small[len(small)-1]...)
		for i, c := range w.clients {
			s := spenders[c]
			if sum += s.spend(c.held.Amount(w.now), w.rand.IntN(20) > 0 || int(w.now/sec)%3 > 0); s.small {
				counts[i]++
			}
		}
		spent, small = append(spent, sum), append(small, counts)
	})
	every(w, 5*sec, func() {
		for _, c := range w.clients {
			c.want(3 * p.draw(w))
		}
	})
	every(w, 23*sec, func() { w.nodes[w.rand.IntN(len(w.nodes))].fail(2 * sec) })
	w.run(100 * sec)
	most := 0.0
	for _, length := range []int{1, 10, 30, 100, 1000} {
		seconds := float64(length) * float64(slot) / float64(sec)
		for from := 0; from+length < len(spent); from++ {
			bound := float64(capacity) / unit * (seconds + 0.1)
			for i := range w.clients {
				if small[from+length][i] > small[from][i] {
					bound++
				}
			}
			units := spent[from+length] - spent[from]
			most = max(most, units/bound)
			if units > bound+1e-6 {
				t.Fatalf("%.0f units in %.2f s at slot %d, want at most %.0f", units, seconds, from, bound)
			}
		}
	}
	t.Logf("at most %.0f%% of the bound is spent", 100*most)
	if most < 0.8 {
		t.Errorf("at most %.0f%% of the bound is spent: the test shows little", 100*most)
	}
}
