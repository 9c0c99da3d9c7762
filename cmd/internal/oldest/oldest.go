// Package oldest finds the elements of a large set that have waited longest. The set is not
// kept in order: the order changes with each request, but it is needed only when a
// bound is reached.
package oldest

import (
	"cmp"
	"time"

	"github.com/headgate/headgate/internal/sorting"
)

// pause is the minimum time between two scans after a scan found nothing. A scan of
// 16,384 elements takes about 0.1 ms.
const pause = 10 * time.Millisecond

// Clock converts the times of a set to nanoseconds since its start. A Clock uses the monotonic
// reading of a time: with the wall clock, an element from before a clock that was set back
// would be the youngest one. A Clock is a value.
type Clock struct{ start time.Time }

// NewClock returns a Clock that starts at a time of time.Now.
func NewClock(start time.Time) Clock { return Clock{start} }

// At returns the nanoseconds from the start to now, at least 1: smaller numbers mark elements
// that are no candidates.
func (c Clock) At(now time.Time) int64 { return max(int64(now.Sub(c.start)), 1) }

// Finder returns elements by their time, the oldest first. It scans the set again only when
// it has returned all elements of the last scan. The zero Finder is ready for use. A Finder
// is not safe for concurrent use.
type Finder[T any] struct {
	found []element[T]
	given int
	next  int64 // The earliest time of the next scan, in nanoseconds.
}

type element[T any] struct {
	value T
	since int64
}

// Next returns the oldest element and its time at the scan. The caller must check that the
// element still has this time. each calls add for every candidate. All times, including now,
// are those of one Clock.
func (f *Finder[T]) Next(now int64, each func(add func(value T, since int64))) (value T, since int64, ok bool) {
	if f.given == len(f.found) {
		if now < f.next {
			return value, 0, false
		}
		f.scan(now, each)
	}
	if f.given == len(f.found) {
		return value, 0, false
	}
	e := f.found[f.given]
	f.found[f.given] = element[T]{} // The array must not keep the element alive.
	f.given++
	return e.value, e.since, true
}

func (f *Finder[T]) scan(now int64, each func(add func(T, int64))) {
	f.found, f.given = f.found[:0], 0
	each(func(value T, since int64) { f.found = append(f.found, element[T]{value, since}) })
	sorting.Func(f.found, func(a, b element[T]) int { return cmp.Compare(a.since, b.since) })
	f.next = now + int64(pause)
}
