package bounds

import (
	"runtime/debug"

	"github.com/headgate/headgate/cmd/internal/heap"
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
	live, _ := heap.Live()
	debug.SetGCPercent(gcPercent(max(table, live), table))
	heap.AfterCollection(func() bool {
		live, _ := heap.Live()
		debug.SetGCPercent(gcPercent(live, table))
		return true
	})
}

// gcPercent gives the percentage for a live heap, a part of which is a table, in bytes: garbage as large
// as the heap without the table, as is Go's default, but at least the constant.
func gcPercent(live, table int64) int {
	return int(min(maxPercent, max(minPercent, 100*max(live-table, garbage)/max(live, 1))))
}
