package state

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate"
)

// slowDivide hands out one unit at a time: to each band up to its floor, then to the bands in
// order. In a band, the unit goes to the unmet claim with the smallest level.
func slowDivide(capacity int64, floors []int, claims []*claim) []int64 {
	sizes := make([]int64, len(claims))
	give := func(band int) bool {
		best := -1
		for i, c := range claims {
			b := c.own[0]
			if b.Band-1 != band || sizes[i] >= b.Wants {
				continue
			}
			if best < 0 || sizes[i]*claims[best].own[0].Weight < sizes[best]*b.Weight {
				best = i
			}
		}
		if best >= 0 {
			sizes[best]++
		}
		return best >= 0
	}
	left := capacity
	for band, percent := range floors {
		for n := capacity * int64(percent) / 100; n > 0 && left > 0 && give(band); n-- {
			left--
		}
	}
	for band := range floors {
		for left > 0 && give(band) {
			left--
		}
	}
	return sizes
}

// TestDivideTwin compares the division with one that hands out single units. The sizes differ by
// less than the weight, and the sums of the bands are equal.
func TestDivideTwin(t *testing.T) {
	d := divider{least: make(map[int64]int64)}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		res := &resource{heap: -1, capacity: 100 * r.Int64N(4)}
		res.terms = Resource{Algorithm: MaxMin, Floors: [][]int{{0}, {30, 20}, {0, 50, 10}, {100, 0}}[r.IntN(4)]}
		var claims []*claim
		for i := range 1 + r.IntN(8) {
			c := &claim{resource: res, id: uint64(i)}
			c.own[0] = Bucket{Band: 1 + r.IntN(len(res.terms.Floors)), Weight: 1 + r.Int64N(3), Wants: r.Int64N(120)}
			claims = append(claims, c)
			res.add(c)
		}
		d.divide(res, 1, 1)
		want := slowDivide(res.capacity, res.terms.Floors, claims)
		var got, wanted [3]int64
		for i, c := range claims {
			if diff := c.target - want[i]; diff > c.own[0].Weight || -diff > c.own[0].Weight {
				t.Fatalf("seed %d: claim %d of %d with floors %v has %d, want about %d", seed, i, res.capacity, res.terms.Floors, c.target, want[i])
			}
			got[c.own[0].Band-1] += c.target
			wanted[c.own[0].Band-1] += want[i]
		}
		if got != wanted {
			t.Fatalf("seed %d: the bands of %d with floors %v have %v, want %v", seed, res.capacity, res.terms.Floors, got, wanted)
		}
	}
}

// TestLongestWaiting has three slots for five holders. Each of them gets a slot in turn, and no
// slot moves earlier than after a turn.
func TestLongestWaiting(t *testing.T) {
	d := divider{least: make(map[int64]int64)}
	res := &resource{heap: -1, capacity: 3, terms: Resource{Algorithm: MaxMin, Slots: true}}
	had := make(map[string]int)
	for i := range 5 {
		c := &claim{resource: res, id: uint64(i), holder: &holder{name: fmt.Sprint(i)}, since: headgate.Instant(i)}
		c.own[0] = Bucket{Band: 1, Weight: 1, Wants: 1}
		res.add(c)
	}
	const turn = 10
	before := ""
	for now := headgate.Instant(10); now < 200; now++ {
		d.divide(res, now, turn)
		names := ""
		for _, holder := range []string{"0", "1", "2", "3", "4"} {
			for _, c := range res.claims {
				if c.holder.name == holder && c.target == 1 {
					had[holder]++
					names += holder
				}
			}
		}
		if before == "" && names != "012" {
			t.Fatalf("the first slots are for %s, want the longest-waiting 012", names)
		}
		if len(names) != 3 {
			t.Fatalf("%d slots of 3 are given: %s", len(names), names)
		}
		before = names
	}
	for holder, times := range had {
		if times < 190*3/5-2*turn {
			t.Errorf("holder %s had a slot in %d of 190 divisions, want about %d", holder, times, 190*3/5)
		}
	}
	if len(had) != 5 {
		t.Errorf("%d holders had slots, want 5", len(had))
	}
}

// BenchmarkDivide divides one resource among 5,000 holders.
func BenchmarkDivide(b *testing.B) {
	d := divider{least: make(map[int64]int64)}
	res := crowd(5000)
	for i := 0; b.Loop(); i++ {
		d.divide(res, headgate.Instant(i), 1000)
	}
}

func crowd(n int) *resource {
	r := rand.New(rand.NewPCG(1, 1))
	res := &resource{heap: -1, capacity: int64(n) * 5 * unit, terms: Resource{Algorithm: MaxMin}}
	for i := range n {
		c := &claim{resource: res, id: uint64(i)}
		c.own[0] = Bucket{Band: 1, Weight: 1 + r.Int64N(3), Wants: r.Int64N(20 * unit)}
		res.add(c)
	}
	return res
}
