package app

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/store/memory"
)

const (
	// garbage is how much may lie about between two collections beside a table on the
	// heap, in bytes.
	garbage = 32 << 20
	// leastPercent keeps a table of many GiB from being collected without end.
	leastPercent = 5
)

// boundProcess sets the garbage collector for a process that has tables of keys. One on
// the heap is most of it, and by Go's default as much garbage as the table is large
// would be kept; it is cheap to collect around, since nothing in it points anywhere.
// The memory limit holds the process to the bound that headgate check prints, and to its
// container; it leaves room for a table outside the heap, which Go does not count.
// What the operator sets with GOGC and GOMEMLIMIT stands.
func boundProcess(c *config.Config) {
	heap, outside := tables(c)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(heap))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		container, _ := containerMemory("/sys/fs/cgroup/memory.max")
		debug.SetMemoryLimit(memoryLimit(c.MemoryBound(), container, outside))
	}
}

// tables gives the bytes of tables on the heap and outside.
func tables(c *config.Config) (heap, outside int64) {
	own := c.StoreConfig().MaxMemory
	if c.Shared != nil {
		heap = c.MaxMemory - own // What is taken ahead.
	}
	if memory.OutsideHeap {
		return heap, own
	}
	return heap + own, 0
}

func gcPercent(table int64) int {
	return int(min(100, max(leastPercent, 100*garbage/max(table, 1))))
}

// memoryLimit is what Go may take: the bound, and in a container (0 is none) no more than
// it has but a tenth, which is for what Go does not count; less the tables outside the
// heap. A container that is too small for its max_memory leaves a fourth of it: with a
// lower limit the collector would run without end.
func memoryLimit(bound, container, outside int64) int64 {
	if container == 0 {
		return bound - outside
	}
	return min(bound-outside, max(container/10*9-outside, container/4))
}

// containerMemory reads the limit of the container that the process runs in.
func containerMemory(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return limit, err == nil && limit > 0 // "max" is no limit.
}
