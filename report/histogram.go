package report

import (
	"sync/atomic"
	"time"
)

// latencyBounds are the upper bounds of the buckets: a decision in memory takes
// about a microsecond, one over a network up to the store's timeout.
var latencyBounds = [...]time.Duration{
	time.Microsecond, 2500 * time.Nanosecond, 5 * time.Microsecond,
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond,
}

// Histogram counts durations in fixed buckets. The zero Histogram is empty.
type Histogram struct {
	buckets [len(latencyBounds) + 1]atomic.Uint64
	sum     atomic.Int64
}

// Observe counts d. The first buckets hold nearly all, so the search is short.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Distribution is what a Histogram holds at one time.
type Distribution struct {
	Count uint64
	Sum   time.Duration
	// Below gives for each bound how many durations were at most that long.
	Below map[time.Duration]uint64
}

// Distribution reads the histogram. What is counted meanwhile may be in it in part.
func (h *Histogram) Distribution() Distribution {
	d := Distribution{Below: make(map[time.Duration]uint64, len(latencyBounds))}
	for i := range h.buckets {
		d.Count += h.buckets[i].Load()
		if i < len(latencyBounds) {
			d.Below[latencyBounds[i]] = d.Count
		}
	}
	d.Sum = time.Duration(h.sum.Load())
	return d
}
