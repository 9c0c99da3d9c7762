package pacing

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// sums gives the units of all instances in each window, each by its own clock.
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

// times gives when units were given, by the right clock and in order.
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

// most gives the most units in any interval of a length, open at its end, and when such
// an interval begins. It needs to look only at those that begin with a unit: moved to
// its first unit, an interval loses none.
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

// slots counts the times of so many slots from a time on.
func slots(times []headgate.Instant, from headgate.Instant, slot time.Duration, n int) []float64 {
	counts := make([]float64, n)
	for _, at := range times {
		if k := int64(at.Sub(from)) / int64(slot); at >= from && k < int64(n) {
			counts[k]++
		}
	}
	return counts
}

// variation gives the standard deviation as a part of the mean.
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

// percentile gives the least value that is not below so many percent of them.
func percentile(values []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// TestJudges: the judges see one unit too many, wherever it is.
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
			t.Errorf("%v: %d from %v, want %d from %d ms", c.times, n, from, c.most, c.from)
		}
	}
	f := fleet{order: order{limit: 4}, first: 1, seconds: 2, members: []*instance{
		{windows: map[int64]int64{0: 9, 1: 2, 2: 3}}, {windows: map[int64]int64{1: 1, 3: 9}},
	}}
	if got := f.sums(); !maps.Equal(got, map[int64]int64{0: 9, 1: 3, 2: 3, 3: 9}) || f.used() != 0.75 {
		t.Errorf("sums %v, %v used", got, f.used())
	}
	counts := slots(ms(990, 1000, 1009, 1010, 1029, 1030), 1_000_000_000, 10*time.Millisecond, 3)
	if !slices.Equal(counts, []float64{2, 1, 1}) {
		t.Errorf("slots %v", counts)
	}
	if v := variation([]float64{100, 0, 0, 0}); math.Abs(v-math.Sqrt(3)) > 1e-9 {
		t.Errorf("variation %v", v)
	}
	if p := percentile([]time.Duration{4, 1, 3, 2}, 75); p != 3 {
		t.Errorf("percentile %v", p)
	}
}
