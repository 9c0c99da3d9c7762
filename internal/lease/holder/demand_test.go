package holder

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

const (
	ms  = headgate.Instant(time.Millisecond)
	sec = headgate.Instant(time.Second)
)

// TestDemand has demands and what a holder then wants, in thousandths.
func TestDemand(t *testing.T) {
	steady := func(rate int64) func(second int64) int64 { return func(int64) int64 { return rate } }
	for _, c := range []struct {
		name    string
		units   func(second int64) int64
		after   int64 // seconds
		waiting int64
		want    int64
	}{
		{"no second is complete: the waiting units count", steady(7), 0, 3, 6000},
		{"one second is complete", steady(10), 1, 0, 9000},
		{"ten a second, however many seconds are complete", steady(10), 4, 0, 9000},
		{"ten a second for long", steady(10), 100, 0, 9000},
		{"the waiting units come on top", steady(10), 100, 2, 13000},
		{"a demand that has ended: the last second bounds the mean", func(s int64) int64 { return 100 * max(min(19-s, 1), 0) }, 20, 0, 2025},
		{"a demand that has fallen to a tenth", func(s int64) int64 { return 100 - 90*max(min(s-18, 1), 0) }, 20, 0, 9000 + 8538 + 2025},
		{"nothing for ten seconds", func(s int64) int64 { return 10 * max(min(11-s, 1), 0) }, 21, 0, 0},
		{"the last second has the weight 10 of 55", func(s int64) int64 { return 55 * max(s-98, 0) }, 100, 0, 9000},
		{"the tenth second has the weight 1", func(s int64) int64 { return 55*max(min(91-s, 1), 0)*max(min(s-89, 1), 0) + max(s-98, 0) }, 100, 0, 1063},
		{"a flood of waiters is bounded", steady(0), 1, 1 << 62, state.MaxAmount},
		{"a flood of units is bounded", steady(1 << 62), 20, 0, state.MaxAmount},
	} {
		var d Demand
		for second := range c.after + 1 {
			if second < c.after {
				d.Add(headgate.Instant(second)*sec+sec/2, c.units(second))
			} else {
				d.Add(headgate.Instant(second)*sec, 0)
			}
			if second == 0 {
				d = Demand{}
				d.Add(0, 0)
				d.Add(sec/2, max(c.units(0), 0))
			}
		}
		if got := d.Wants(headgate.Instant(c.after)*sec+ms, c.waiting); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// twin keeps all units with their times.
type twin []struct {
	at    headgate.Instant
	units int64
}

func (w twin) wants(first, now headgate.Instant, waiting int64) int64 {
	current := int64(now-first) / int64(sec)
	n := min(current, 10)
	var sum, weights, recent int64
	for i := range n {
		for _, a := range w {
			if int64(a.at-first)/int64(sec) == current-1-i {
				sum += a.units * (n - i)
			}
		}
		weights += n - i
	}
	for _, a := range w {
		if ago := int64(now-first)/int64(sec/10) - int64(a.at-first)/int64(sec/10); ago >= 1 && ago <= 10 {
			recent += a.units
		}
	}
	wants := 2000 * waiting
	if weights > 0 {
		bound := 900*recent + int64(2700*math.Sqrt(float64(recent))) + 2025
		wants += min(900*sum/weights, bound)
	}
	return min(wants, state.MaxAmount)
}

// TestDemandTwin compares the estimate with the formula over a list of all calls.
func TestDemandTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var d Demand
		var slow twin
		now := headgate.Instant(r.Int64N(int64(sec)))
		first := now
		d.Add(now, 0)
		for range 60 {
			now += headgate.Instant(r.Int64N(int64(sec)))
			if r.IntN(20) == 0 {
				now += headgate.Instant(r.Int64N(int64(30 * sec)))
			}
			units := r.Int64N(50)
			d.Add(now, units)
			slow = append(slow, struct {
				at    headgate.Instant
				units int64
			}{now, units})
			waiting := r.Int64N(4)
			if got, want := d.Wants(now, waiting), slow.wants(first, now, waiting); got != want {
				t.Fatalf("after %v: %d, want %d", now.Sub(first), got, want)
			}
		}
	}
}

// TestDemandAllocates nothing.
func TestDemandAllocates(t *testing.T) {
	var d Demand
	now := headgate.Instant(0)
	if n := testing.AllocsPerRun(100, func() {
		now += 100 * ms
		d.Add(now, 3)
		d.Wants(now, 2)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
