package schedule

import (
	"math/rand/v2"
	"testing"
)

// TestBrakedSums checks that the allowed units of all instances add up to the percentage in
// every window. No instance may use more than its part.
func TestBrakedSums(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for range inputs() / 100 {
		limit, instances, percent := oneOf(r, 0, 1, 10, 95, 96, r.Int64N(300), r.Int64N(100_000)), 1+r.IntN(100), r.IntN(120)-10
		plans := fleet(t, limit, instances)
		want := limit * int64(min(max(percent, 0), 100)) / 100
		if limit > 0 && percent > 0 {
			want = max(want, 1)
		}
		for range 20 {
			w := drawWindow(r)
			if w == 1<<63-1 {
				w-- // The window after the last one has no number.
			}
			var sum int64
			for i, p := range plans {
				braked := p.Braked(w, percent)
				if braked < 0 || braked > p.Part(w) {
					t.Fatalf("limit %d, %d%%: instance %d of %d may use %d of its %d units in window %d", limit, percent, i, instances, braked, p.Part(w), w)
				}
				sum += braked
			}
			if sum != want {
				t.Fatalf("limit %d of %d instances, %d%%: got %d units in window %d, want %d", limit, instances, percent, sum, w, want)
			}
		}
	}
}

// TestBrakedEvenly checks that every instance gets some units. In whole
// rounds, each instance has its even part of the allowed units. Each instance waits for a
// unit at most two rounds longer than with a limit of that size.
func TestBrakedEvenly(t *testing.T) {
	for _, c := range []struct {
		limit     int64
		instances int
		percent   int
	}{{10, 96, 10}, {10, 96, 50}, {10, 96, 99}, {10, 100, 10}, {96, 96, 50}, {95, 96, 30}, {97, 96, 1}, {1000, 96, 5}, {7, 3, 20}, {1, 5, 50}} {
		going := max(c.limit*int64(c.percent)/100, 1)
		n := int64(c.instances)
		round := n / greatestDivisor(c.limit, n)
		for i, p := range fleet(t, c.limit, c.instances) {
			if i%7 > 0 && i != c.instances-1 {
				continue
			}
			var had, high, low, gap, longest int64
			for w := range 4 * round * max(c.limit/going, 1) {
				units := p.Braked(w, c.percent)
				had += units
				if gap++; units > 0 {
					longest, gap = max(longest, gap), 0
				}
				if (w+1)%round == 0 {
					ahead := n*had - (w+1)*going
					high, low = max(high, ahead), min(low, ahead)
				}
			}
			if high-low >= n {
				t.Errorf("limit %d of %d instances, %d%%: instance %d differs from its even part by %d/%d units, want less than 1", c.limit, n, c.percent, i, high-low, n)
			}
			if most := n/going + 2*round + 1; longest > most {
				t.Errorf("limit %d of %d instances, %d%%: instance %d waits for a unit for %d windows, want at most %d", c.limit, n, c.percent, i, longest, most)
			}
		}
	}
}
