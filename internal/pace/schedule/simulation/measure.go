package simulation

import (
	"math"
	"slices"
	"time"
)

// Slots returns the number of permits given in each slot of a window of length per.
func (w Window) Slots(per, slot time.Duration) []int {
	counts := make([]int, (per+slot-1)/slot)
	for _, at := range w.Given {
		counts[min(int(at/slot), len(counts)-1)]++
	}
	return counts
}

// Variation returns the coefficient of variation: the standard deviation of counts divided by
// the mean.
func Variation(counts []int) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
	}
	mean := sum / float64(len(counts))
	if mean == 0 {
		return 0
	}
	for _, c := range counts {
		squares += (float64(c) - mean) * (float64(c) - mean)
	}
	return math.Sqrt(squares/float64(len(counts))) / mean
}

// Used returns the used fraction of the units of the windows.
func Used(windows []Window) float64 {
	var used, part int64
	for _, w := range windows {
		used, part = used+w.Used, part+w.Part
	}
	return float64(used) / float64(max(part, 1))
}

// Wait returns a quantile of the waiting times of the served callers. q is 0.99 for the 99th
// percentile.
func Wait(windows []Window, q float64) time.Duration {
	var waits []time.Duration
	for _, w := range windows {
		waits = append(waits, w.Waits...)
	}
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[min(int(q*float64(len(waits))), len(waits)-1)]
}
