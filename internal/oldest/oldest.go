// Package oldest finds the elements of a large set that have waited longest, without
// keeping the set in order. What decides the order changes with each request, and is
// needed only when a bound is reached.
package oldest

import (
	"cmp"
	"slices"
	"time"
)

// pause is the least time between two scans of which the first found nothing. A scan
// of 16,384 elements takes about 0.1 ms.
const pause = 10 * time.Millisecond

// Finder gives elements by the time that each carries, the oldest first. A scan of
// the set is used until all that it found is given away. The zero Finder is ready.
// Finder is not safe for concurrent use.
type Finder[T any] struct {
	found []element[T]
	given int
	next  int64 // the earliest time of the next scan, in nanoseconds
}

type element[T any] struct {
	value T
	since int64
}

// Next gives the oldest element and the time that it carried when it was scanned: the
// caller checks that this still holds. each calls add for every candidate. now and
// all times are nanoseconds of one clock.
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
	f.found[f.given] = element[T]{} // Keeps nothing alive.
	f.given++
	return e.value, e.since, true
}

func (f *Finder[T]) scan(now int64, each func(add func(T, int64))) {
	f.found, f.given = f.found[:0], 0
	each(func(value T, since int64) { f.found = append(f.found, element[T]{value, since}) })
	slices.SortFunc(f.found, func(a, b element[T]) int { return cmp.Compare(a.since, b.since) })
	f.next = now + int64(pause)
}
