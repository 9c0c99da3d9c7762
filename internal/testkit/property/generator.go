package property

import (
	"math"
	"slices"
)

// A Generator makes random values.
type Generator[V any] struct{ next func(t *T) V }

// Draw returns a random value. A failure of the case logs it with its label.
func (g Generator[V]) Draw(t *T, label string) V {
	v := g.next(t)
	t.note(label, v)
	return v
}

// Custom makes values from other generators.
func Custom[V any](next func(t *T) V) Generator[V] { return Generator[V]{next} }

// Just makes v.
func Just[V any](v V) Generator[V] { return Custom(func(*T) V { return v }) }

// Map makes convert of the values of g.
func Map[V, W any](g Generator[V], convert func(V) W) Generator[W] {
	return Custom(func(t *T) W { return convert(g.next(t)) })
}

// OneOf makes a value of one of the generators.
func OneOf[V any](from ...Generator[V]) Generator[V] {
	return Custom(func(t *T) V { return from[t.random.IntN(len(from))].next(t) })
}

// SampledFrom makes one of the values.
func SampledFrom[S ~[]V, V any](from S) Generator[V] {
	return Custom(func(t *T) V { return from[t.random.IntN(len(from))] })
}

// Bool makes both values.
func Bool() Generator[bool] { return Custom(func(t *T) bool { return t.random.Uint64()&1 != 0 }) }

// Byte makes all values.
func Byte() Generator[byte] { return Custom(func(t *T) byte { return byte(t.random.Uint64()) }) }

// Uint32 makes all values, and often small ones.
func Uint32() Generator[uint32] {
	return Map(Int64Range(0, math.MaxUint32), func(n int64) uint32 { return uint32(n) })
}

// IntRange makes numbers from least to most, as Int64Range does.
func IntRange(least, most int) Generator[int] {
	return Map(Int64Range(int64(least), int64(most)), func(n int64) int { return int(n) })
}

// Int64Range makes numbers from least to most. A quarter of them are small: near 0, or near the end that is next to 0. An eighth
// are one of both ends.
func Int64Range(least, most int64) Generator[int64] {
	span := uint64(most) - uint64(least) // Without overflow, also from the smallest to the largest number.
	return Custom(func(t *T) int64 {
		anywhere := t.random.Uint64()
		if span < math.MaxUint64 {
			anywhere %= span + 1
		}
		switch t.random.IntN(8) {
		case 0:
			return SampledFrom([]int64{least, most}).next(t)
		case 1, 2:
			near, few := min(max(least, 0), most), int64(anywhere>>t.random.IntN(64))>>1
			if t.random.Uint64()&1 == 0 {
				few = -few
			}
			if n := near + few; n >= least && n <= most && (n >= near) == (few >= 0) {
				return n
			}
		}
		return int64(uint64(least) + anywhere)
	})
}

// SliceOf makes slices of any length.
func SliceOf[V any](g Generator[V]) Generator[[]V] { return SliceOfN(g, 0, math.MaxInt) }

// SliceOfN makes slices with least to most values.
func SliceOfN[V any](g Generator[V], least, most int) Generator[[]V] {
	return Custom(func(t *T) []V {
		list := make([]V, 0, least)
		for range t.length(least, most) {
			list = append(list, g.next(t))
		}
		return list
	})
}

// DistinctSliceOfN is SliceOfN without a value that is there already. g must make at least most values.
func DistinctSliceOfN[V comparable](g Generator[V], least, most int) Generator[[]V] {
	return Custom(func(t *T) []V {
		list := make([]V, 0, least)
		for length := t.length(least, most); len(list) < length; {
			if v := g.next(t); !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
		return list
	})
}

// MapOf makes maps of any length.
func MapOf[K comparable, V any](keys Generator[K], values Generator[V]) Generator[map[K]V] {
	return MapOfN(keys, values, 0, math.MaxInt)
}

// MapOfN makes maps from least to most pairs, of which those with one key are one.
func MapOfN[K comparable, V any](keys Generator[K], values Generator[V], least, most int) Generator[map[K]V] {
	return Custom(func(t *T) map[K]V {
		pairs := map[K]V{}
		for range t.length(least, most) {
			pairs[keys.next(t)] = values.next(t)
		}
		return pairs
	})
}

// length draws a length from least to most. It grows with the size of the case.
func (t *T) length(least, most int) int {
	most = least + min(most-least, t.size)
	return IntRange(least, most).next(t)
}
