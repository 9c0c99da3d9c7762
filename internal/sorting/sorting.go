// Package sorting sorts slices with code that all element types share. The compiler makes functions of 10 KB for each type that
// slices.SortFunc sorts. Code that requests run uses package slices, which is faster: these functions swap elements by reflection.
package sorting

import "sort"

// Func sorts all in ascending order of compare, like slices.SortFunc. Equal elements may swap places.
func Func[E any](all []E, compare func(a, b E) int) {
	sort.Slice(all, func(i, j int) bool { return compare(all[i], all[j]) < 0 })
}

// StableFunc sorts all in ascending order of compare, and equal elements keep their order, like slices.SortStableFunc.
func StableFunc[E any](all []E, compare func(a, b E) int) {
	sort.SliceStable(all, func(i, j int) bool { return compare(all[i], all[j]) < 0 })
}
