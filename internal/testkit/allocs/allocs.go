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

// Kept is the memory, in bytes, that is in use after a function and was not before it. The caller keeps what the
// function makes alive, and makes so much that what other goroutines do does not count.
func Kept(f func()) int64 {
	before := inUse()
	f()
	return inUse() - before
}

// inUse is the heap after two collections: the first one only queues some objects for the second.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
