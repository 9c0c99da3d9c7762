package app

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// garbage is how much may lie about between two collections, beside the same part
	// of the live heap that is no store. Less makes no difference until thousands of
	// connections are open, and then costs time.
	garbage = 32 << 20
	// leastPercent keeps a store of many GiB from being collected without end.
	leastPercent = 5
)

// boundProcess sets the garbage collector for a process whose heap is mostly one
// table: by Go's default as much garbage as the table is large would be kept. The
// table is cheap to collect around, since nothing in it points anywhere. What the
// operator sets with GOGC and GOMEMLIMIT stands.
func boundProcess(maxMemory int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(maxMemory))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit, ok := containerMemory("/sys/fs/cgroup/memory.max"); ok {
			debug.SetMemoryLimit(limit / 10 * 9) // A tenth is for what Go does not count.
		}
	}
}

func gcPercent(maxMemory int64) int {
	return int(min(100, max(leastPercent, 100*garbage/max(maxMemory, 1))))
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
