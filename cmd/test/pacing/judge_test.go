package pacing

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// sums returns the units of all instances in each window. Each instance counts windows by its own clock.
func (f *fleet) sums() map[int64]int64 {
	sums := map[int64]int64{}
	for _, in := range f.members {
		in.mu.Lock()
		for w, units := range in.windows {
			sums[w] += units
		}
		in.mu.Unlock()
	}
	return sums
}

// times returns the times of all units on a correct clock, in order.
func (f *fleet) times() []headgate.Instant {
	var all []headgate.Instant
	for _, in := range f.members {
		in.mu.Lock()
		all = append(all, in.times...)
		in.mu.Unlock()
	}
	slices.Sort(all)
	return all
}

// most returns the most units in any half-open interval of a length, and the start of such an
// interval. It checks only intervals that begin with a unit: an interval that is moved to its
// first unit loses no unit.
func most(times []headgate.Instant, length time.Duration) (units int64, from headgate.Instant) {
	begins := 0
	for i := range times {
		for times[i].Sub(times[begins]) >= length {
			begins++
		}
		if n := int64(i - begins + 1); n > units {
			units, from = n, times[begins]
		}
	}
	return units, from
}

// slots returns the number of times in each of n slots, beginning at from.
func slots(times []headgate.Instant, from headgate.Instant, slot time.Duration, n int) []float64 {
	counts := make([]float64, n)
	for _, at := range times {
		if k := int64(at.Sub(from)) / int64(slot); at >= from && k < int64(n) {
			counts[k]++
		}
	}
	return counts
}

// variation returns the standard deviation divided by the mean.
func variation(counts []float64) float64 {
	mean, square := 0.0, 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	for _, c := range counts {
		square += (c - mean) * (c - mean) / float64(len(counts))
	}
	return math.Sqrt(square) / mean
}

// percentile returns the smallest value that is at least as large as percent of the values.
func percentile(values []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// TestJudges checks the measuring functions of this file.
func TestJudges(t *testing.T) {
	ms := func(values ...int64) (times []headgate.Instant) {
		for _, v := range values {
			times = append(times, headgate.Instant(v*int64(time.Millisecond)))
		}
		return times
	}
	for _, c := range []struct {
		times []headgate.Instant
		most  int64
		from  int64
	}{
		{ms(), 0, 0},
		{ms(0, 1000, 2000), 1, 0},
		{ms(0, 999, 1998), 2, 0},
		{ms(0, 1500, 1600, 2499, 2500), 3, 1500},
		{ms(5, 5, 5, 1004, 1005), 4, 5},
	} {
		if n, from := most(c.times, time.Second); n != c.most || from != ms(c.from)[0] {
			t.Errorf("times %v: got %d units from %v on, want %d from %d ms on", c.times, n, from, c.most, c.from)
		}
	}
	f := fleet{settings: settings{limit: 4}, first: 1, seconds: 2, members: []*instance{
		{windows: map[int64]int64{0: 9, 1: 2, 2: 3}}, {windows: map[int64]int64{1: 1, 3: 9}},
	}}
	if got := f.sums(); !maps.Equal(got, map[int64]int64{0: 9, 1: 3, 2: 3, 3: 9}) || f.used() != 0.75 {
		t.Errorf("got sums %v and a used fraction of %v, want 0.75", got, f.used())
	}
	counts := slots(ms(990, 1000, 1009, 1010, 1029, 1030), 1_000_000_000, 10*time.Millisecond, 3)
	if !slices.Equal(counts, []float64{2, 1, 1}) {
		t.Errorf("slots returns %v, want [2 1 1]", counts)
	}
	if v := variation([]float64{100, 0, 0, 0}); math.Abs(v-math.Sqrt(3)) > 1e-9 {
		t.Errorf("variation returns %v, want the square root of 3", v)
	}
	if p := percentile([]time.Duration{4, 1, 3, 2}, 75); p != 3 {
		t.Errorf("percentile returns %v, want 3ns", p)
	}
}
