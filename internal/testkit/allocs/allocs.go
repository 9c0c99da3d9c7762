// Package allocs measures allocations, for tests.
package allocs

import "runtime"

// Bytes is the least number of bytes that a function allocates, in five runs without the memory of
// earlier calls: other goroutines may allocate too.
func Bytes(f func()) uint64 {
	least := ^uint64(0)
	for range 5 {
		runtime.GC() // A pool loses its content after two collections.
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
