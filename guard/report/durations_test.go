package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestDurations compares Observe with a search through all bounds, for each bound, its neighbours, and random durations.
func TestDurations(t *testing.T) {
	all := []time.Duration{-time.Hour, -1, 0, 1, 1<<63 - 1}
	for _, bound := range DurationBounds() {
		all = append(all, bound-1, bound, bound+1)
	}
	for bit := range 63 {
		all = append(all, 1<<bit-1, 1<<bit, time.Duration(rand.Int64N(1<<bit)))
	}
	for _, d := range all {
		var h Durations
		h.Observe(d)
		want := make([]uint64, len(DurationBounds())+1)
		want[bucketOf(d)] = 1
		if got := h.AppendBuckets(nil); !slices.Equal(got, want) || h.Sum() != max(d, 0) {
			t.Errorf("%d ns: got %v, sum %d ns, want %v", d, got, h.Sum(), want)
		}
	}
}

// bucketOf is the obvious search.
func bucketOf(d time.Duration) int {
	for i, bound := range DurationBounds() {
		if d <= bound {
			return i
		}
	}
	return len(DurationBounds())
}

// TestDurationBounds checks what firstBoundTable needs.
func TestDurationBounds(t *testing.T) {
	bounds := DurationBounds()
	for i := range len(bounds) - 1 {
		if bounds[i+1] < 2*bounds[i] {
			t.Errorf("%v follows %v: a bound must be at least twice the bound before", bounds[i+1], bounds[i])
		}
	}
	bounds[0] = 0
	if DurationBounds()[0] == 0 {
		t.Error("a caller can change the bounds")
	}
}

// TestDurationsRead checks that both reads agree, and that the cheap one allocates nothing.
func TestDurationsRead(t *testing.T) {
	var h Durations
	for i := range 1000 {
		h.Observe(time.Duration(i) * time.Millisecond)
	}
	buckets, sum := h.AppendBuckets(nil), uint64(0)
	d := h.Distribution()
	for i, bound := range DurationBounds() {
		if sum += buckets[i]; d.Below[bound] != sum {
			t.Errorf("up to %v: got %d, want %d", bound, d.Below[bound], sum)
		}
	}
	if d.Count != 1000 || d.Sum != 499_500*time.Millisecond {
		t.Errorf("got %d durations of %v, want 1000 of 499.5s", d.Count, d.Sum)
	}
	if n := testing.AllocsPerRun(100, func() { buckets = h.AppendBuckets(buckets[:0]) }); n != 0 {
		t.Errorf("a read allocates %v times", n)
	}
}

// BenchmarkDurations compares the cost of durations in the first, a middle and the last bucket with the linear search of Histogram.
func BenchmarkDurations(b *testing.B) {
	for _, d := range []time.Duration{50 * time.Microsecond, 150 * time.Millisecond, time.Minute} {
		b.Run(fmt.Sprint("durations ", d), func(b *testing.B) {
			var h Durations
			for b.Loop() {
				h.Observe(d)
			}
		})
		b.Run(fmt.Sprint("histogram ", d), func(b *testing.B) {
			var h Histogram
			for b.Loop() {
				h.Observe(d)
			}
		})
	}
}
