package simulation

import (
	"math"
	"slices"
	"time"
)

// Slots counts the permits that were given in each slot of a window of length per.
func (w Window) Slots(per, slot time.Duration) []int {
	counts := make([]int, (per+slot-1)/slot)
	for _, at := range w.Given {
		counts[min(int(at/slot), len(counts)-1)]++
	}
	return counts
}

// Variation gives the coefficient of variation of counts: their standard deviation
// over their mean, 0 when they are equal.
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

// Used gives the part of the units of some windows that was used.
func Used(windows []Window) float64 {
	var used, part int64
	for _, w := range windows {
		used, part = used+w.Used, part+w.Part
	}
	return float64(used) / float64(max(part, 1))
}

// Wait gives the time within which the part q of the callers that were served in some
// windows were, as in 0.99 for the 99th percentile.
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
