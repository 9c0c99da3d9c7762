package report

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// durationBounds are the upper bounds of the buckets of Durations. Each bound is at least twice the bound before, so that at most
// one bound lies between two powers of two.
var durationBounds = [...]time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// firstBoundTable has, for each length of a duration in bits of nanoseconds, the first bound that such a duration may not exceed.
var firstBoundTable = func() (first [65]uint8) {
	for length := range first {
		least := uint64(1) << max(length-1, 0) // the shortest duration of this length
		for int(first[length]) < len(durationBounds) && uint64(durationBounds[first[length]]) < least {
			first[length]++
		}
	}
	return first
}()

// DurationBounds returns the upper bounds of the buckets of Durations: 18 bounds from 100 µs to 1 minute.
func DurationBounds() []time.Duration { return append([]time.Duration(nil), durationBounds[:]...) }

// Durations counts the durations of requests in fixed buckets, see DurationBounds. The zero Durations is empty. It is safe for
// concurrent use.
type Durations struct {
	buckets [len(durationBounds) + 1]atomic.Uint64
	sum     atomic.Int64
}

// Observe counts d. It compares d with one bound.
func (h *Durations) Observe(d time.Duration) {
	d = max(d, 0)
	i := int(firstBoundTable[bits.Len64(uint64(d))])
	if i < len(durationBounds) && d > durationBounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// AppendBuckets appends the number of durations in each bucket, and then of those above the last bound. A caller that reads
// often and reuses its slice allocates nothing. A concurrent Observe may be included or not.
func (h *Durations) AppendBuckets(to []uint64) []uint64 {
	for i := range h.buckets {
		to = append(to, h.buckets[i].Load())
	}
	return to
}

// Sum returns the sum of all durations.
func (h *Durations) Sum() time.Duration { return time.Duration(h.sum.Load()) }

// Distribution reads all counts. A concurrent Observe may be included only in part.
func (h *Durations) Distribution() Distribution {
	d := Distribution{Below: make(map[time.Duration]uint64, len(durationBounds)), Sum: h.Sum()}
	for i := range h.buckets {
		d.Count += h.buckets[i].Load()
		if i < len(durationBounds) {
			d.Below[durationBounds[i]] = d.Count
		}
	}
	return d
}
