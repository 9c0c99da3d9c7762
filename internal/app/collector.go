package app

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbage is the least garbage between two collections, in bytes. With Go's default, a process
	// with a heap of 4 MiB collects after each 4 MiB: a tenth of the processor time of small requests.
	garbage = 32 << 20
	// minPercent bounds how often a table of many GiB is collected, and maxPercent the heap before the
	// first collection, which is maxPercent of 4 MiB.
	minPercent, maxPercent = 5, 800
)

// paceCollector sets the garbage collector's percentage for the live heap after each collection, because
// a percentage for a small heap would be too high for a large one. table is the part of the heap that is
// one table without pointers, in bytes: frequent collections of it are cheap. paceCollector ends with the process.
func paceCollector(table int64) {
	debug.SetGCPercent(gcPercent(max(table, liveHeap()), table))
	afterCollection(func() { debug.SetGCPercent(gcPercent(liveHeap(), table)) })
}

// gcPercent gives the percentage for a live heap, a part of which is a table, in bytes: garbage as large
// as the heap without the table, as is Go's default, but at least the constant.
func gcPercent(live, table int64) int {
	return int(min(maxPercent, max(minPercent, 100*max(live-table, garbage)/max(live, 1))))
}

// liveHeap is the size of what the last collection has left, in bytes.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// afterCollection calls f after each collection: a collection finalizes an object that nothing uses.
func afterCollection(f func()) {
	mark := new([16]byte) // Too large for the allocator of tiny objects, which does not finalize reliably.
	runtime.SetFinalizer(mark, func(*[16]byte) {
		f()
		afterCollection(f)
	})
}
