package fairshare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// twinShares returns the default shares according to the package comment, without rounding to
// units: of a lasting or pinned client of weight 1, of a late client, of a newcomer, and
// of Others.
func twinShares(capacity, kept, late, light float64, lasting, others, trust bool) (old, young, newcomer, common float64) {
	room := math.Inf(1)
	if kept+late > 0 && !trust {
		room = max(1, math.Floor((kept+late)/4))
	}
	newcomers, other := min(light, room), 0.0
	if others {
		other = 1
	}
	behind := late + newcomers + other
	unit := capacity / max(1, kept+behind)
	old = unit
	if bound := max(1, math.Floor(kept/4)); lasting && !trust && behind > bound {
		old = capacity / (kept + bound)
		unit = capacity * bound / (kept + bound) / behind
	}
	return old, unit, unit * newcomers / max(1, light), unit * other
}

// TestDefaultSharesAgainstTwin compares the default shares of random cycles with the twin.
func TestDefaultSharesAgainstTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 12))
	for range 2000 {
		kept, late, light := r.IntN(30), r.IntN(40), r.IntN(40)
		pinned := r.IntN(kept + 1)
		others, trust := r.IntN(2) == 0, r.IntN(4) == 0
		c := Config{Capacity: r.Int64N(100_000), TrustNames: trust}
		cycle := &cycle{settings: newSettings(c), cells: map[string]*cell{}}
		add := func(name string, n int, set func(*client, int)) {
			for i := range n {
				who := newClient(fmt.Sprintf("%s-%d", name, i), 1)
				set(who, i)
				cycle.add(who, true)
			}
		}
		add("kept", kept, func(x *client, i int) {
			x.active, x.age = cyclesSeen, Lasting
			if i < pinned {
				x.pinned, x.active, x.age = true, 0, 0
			}
		})
		add("late", late, func(x *client, _ int) { x.active, x.age = cyclesSeen, Lasting-1 })
		add("newcomer", light, func(*client, int) {})
		if others {
			cycle.add(newClient(Others, 1), true)
		}
		if len(cycle.all) == 0 {
			continue
		}
		cycle.fair()
		old, young, newcomer, common := twinShares(float64(c.Capacity), float64(kept), float64(late), float64(light), kept > pinned, others, trust)
		var sum int64
		for _, x := range cycle.all {
			want := young
			switch {
			case x.isOthers:
				want = common
			case x.client.pinned || x.client.lasting():
				want = old
			case !x.client.established():
				want = newcomer
			}
			got := x.fair.Load()
			sum += got
			if math.Abs(float64(got)-want) > 3 { // Each level of the division rounds to whole units.
				t.Fatalf("%d kept, %d pinned of them, %d late, %d newcomers, others %v, trust %v, of %d: %s has %d, want %.2f",
					kept, pinned, late, light, others, trust, c.Capacity, x.client.name, got, want)
			}
		}
		if sum != c.Capacity {
			t.Fatalf("the sum of the default shares is %d, want %d", sum, c.Capacity)
		}
	}
}
