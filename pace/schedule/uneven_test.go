package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestTurns checks the number of windows in a turn.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		limit     int64
		instances int
		want      int64
	}{
		{300_000, 96, 1},
		{6144, 96, 1},
		{6143, 96, 2},
		{1000, 96, 7},
		{10, 96, 615}, // about ten minutes, with 6150 units
		{1, 1, 64},
		{1, 1024, 1 << 16},
		{1, MaxInstances, MaxTurn},
		{1, math.MaxInt, MaxTurn},
		{0, 96, 1},
		{-1, -1, 1},
		{1, 0, 64},
		{MaxLimit, MaxInstances, 1},
	} {
		if got := Turns(c.limit, c.instances); got != c.want {
			t.Errorf("Turns(%d, %d) = %d, want %d", c.limit, c.instances, got, c.want)
		}
	}
}

// TestBusyAndIdle has three instances. One of the instances has most of the 10 units a window.
func TestBusyAndIdle(t *testing.T) {
	plans := unevenFleet(t, 10, []int64{150, 10, 40}) // of 20 windows
	var rows []string
	for w := range int64(10) {
		rows = append(rows, fmt.Sprint(plans[0].Part(w), plans[1].Part(w), plans[2].Part(w)))
	}
	// The averages are 7.5, 0.5 and 2. The second instance has a unit in about every other window.
	if got, want := strings.Join(rows, ", "), "7 1 2, 7 1 2, 8 0 2, 7 1 2, 8 0 2, 7 1 2, 8 0 2, 7 1 2, 8 0 2, 7 1 2"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestUnevenByListing compares parts with the twin's list of owners, and sums with added
// parts. It also checks the three properties of a division. The parts of a window add up to
// the limit. Each instance has its units in every turn. In each window, its part differs from
// its average by less than a unit.
func TestUnevenByListing(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for range inputs() / 50 {
		limit := oneOf(r, 0, 1, 2, 10, r.Int64N(40), r.Int64N(700))
		units := drawUnits(r, limit, 1+r.IntN(9))
		plans, owners := unevenFleet(t, limit, units), twinTurn(limit, units)
		turns := int64(len(owners))
		first := turns * (r.Int64N(200) - 100)
		for i, p := range plans {
			var sum int64
			for k := range turns {
				var want int64
				for _, owner := range owners[k] {
					if owner == i {
						want++
					}
				}
				got := p.Part(first + k)
				if got != want || got*turns-units[i] >= turns || units[i]-got*turns >= turns || got > p.Most() {
					t.Fatalf("limit %d, units %d: instance %d has %d units in window %d, want %d", limit, units, i, got, k, want)
				}
				if before := p.Sum(first, first+k); before != sum {
					t.Fatalf("limit %d, units %d: instance %d has %d units before window %d, want %d", limit, units, i, before, k, sum)
				}
				sum += got
			}
			if sum != units[i] {
				t.Fatalf("limit %d, units %d: instance %d has %d units in a turn, want its units", limit, units, i, sum)
			}
			if from, to := first-r.Int64N(500), first+r.Int64N(500); p.Sum(from, to) != slowSum(p, from, to) {
				t.Fatalf("limit %d, units %d: windows %d to %d have %d units, want %d", limit, units, from, to, p.Sum(from, to), slowSum(p, from, to))
			}
		}
		for k, window := range owners {
			if int64(len(window)) != limit {
				t.Fatalf("limit %d: window %d has %d units, want the limit", limit, k, len(window))
			}
		}
	}
}

func slowSum(p Plan, from, to int64) (sum int64) {
	for w := from; w < to; w++ {
		sum += p.Part(w)
	}
	return sum
}

// TestUnevenRuns checks that units are spread evenly over the windows of a turn. In any run
// of windows, an instance differs from its average by a few units only.
func TestUnevenRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	var worst float64
	for range 60 {
		limit, instances := oneOf(r, 1, 3, 10, 95, 1+r.Int64N(500)), 2+r.IntN(95)
		units := drawUnits(r, limit, instances)
		i := r.IntN(instances)
		p := unevenFleet(t, limit, units)[i]
		turns := Turns(limit, instances)
		var high, low float64
		for k := range 2 * turns {
			ahead := float64(p.Sum(0, k)) - float64(units[i])*float64(k)/float64(turns)
			high, low = max(high, ahead), min(low, ahead)
		}
		worst = max(worst, high-low)
	}
	if worst >= 4 {
		t.Errorf("an instance differs from its average by %.2f units, want less than 4", worst)
	}
	t.Logf("largest difference from the average: %.2f units", worst)
}

// TestUnevenLargest checks the sums of a largest plan, and windows near the extremes.
func TestUnevenLargest(t *testing.T) {
	p := unevenFleet(t, MaxLimit, []int64{1, MaxLimit - 1})[1]
	for _, c := range []struct{ from, to, want int64 }{
		{0, 1, MaxLimit - 1},
		{-1 << 63, 1<<63 - 1, 1<<63 - 1},
		{-1 << 63, -1<<63 + 2, 2*MaxLimit - 2},
		{0, 1 << 40, 1<<63 - 1},
		{0, 1<<23 + 10, 1<<63 - 1},
		{0, 1<<23 - 10, (1<<23 - 10) * (MaxLimit - 1)},
		{1<<63 - 2, 1<<63 - 1, MaxLimit - 1},
		{5, 5, 0},
		{5, -5, 0},
	} {
		if got := p.Sum(c.from, c.to); got != c.want {
			t.Errorf("windows %d to %d: got %d units, want %d", c.from, c.to, got, c.want)
		}
	}
	if w, before, ok := p.After(-1<<63, 1<<63-1); !ok || w != -1<<63+1<<23 || before != 1<<23*(MaxLimit-1) {
		t.Errorf("After puts the largest number of units into window %d, with %d before, %v", w, before, ok)
	}
	rare := unevenFleet(t, 1, []int64{1, 127})[0] // has one unit in 128 windows
	for _, need := range []int64{1 << 57, 1 << 58, 1 << 59, 1<<63 - 1} {
		if w, _, ok := rare.After(0, need); ok {
			t.Errorf("After puts %d units into window %d, want no such window", need, w)
		}
	}
	if _, _, ok := p.After(1<<62, 1); ok {
		t.Error("After finds a window that an Instant cannot represent")
	}
}

// TestUnevenRefused checks the errors of invalid divisions.
func TestUnevenRefused(t *testing.T) {
	for _, c := range []struct {
		limit int64
		units []int64
		index int
		says  string
	}{
		{10, []int64{64, 65}, 0, "add up to 129, but 13 windows have 130 units"},
		{10, []int64{64, 67}, 0, "more than the 130 units of 13 windows"},
		{10, []int64{-1, 131}, 0, "instance 0 has -1 units"},
		{10, []int64{1<<63 - 1, 1<<63 - 1, 132}, 0, "more than"},
		{10, nil, 0, "0 instances"},
		{10, []int64{130}, 1, "index 1 of 1"},
		{-10, []int64{130}, 0, "limit -10"},
		{0, []int64{0, 1}, 0, "more than the 0 units"},
	} {
		if p, err := Uneven(c.limit, time.Second, c.units, c.index); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), c.says) || p.Limit != 0 {
			t.Errorf("limit %d, units %d: got error %v, want %q in it", c.limit, c.units, err, c.says)
		}
	}
	if p, err := Uneven(0, time.Second, []int64{0, 0}, 1); err != nil || p.Part(3) != 0 || p.Most() != 0 || p.Check() != nil {
		t.Errorf("limit 0: got error %v, or a plan that is not empty", err)
	}
}
