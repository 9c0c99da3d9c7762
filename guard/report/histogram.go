package report

import (
	"sync/atomic"
	"time"
)

// latencyBounds are the upper bounds of the buckets. A decision takes about a
// microsecond in memory, and up to the store's timeout over a network.
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

// Observe counts d. The search is linear, because nearly all durations fall into the
// first buckets.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Distribution is the content of a Histogram at one time.
type Distribution struct {
	Count uint64
	Sum   time.Duration
	// Below has, for each bound, the number of durations up to that bound.
	Below map[time.Duration]uint64
}

// Distribution reads the histogram. A concurrent Observe may be included only in part.
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
