package app

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/headgate/headgate/config"
)

// boundProcess sets the garbage collector for a process whose heap is mostly one
// table: by Go's default as much garbage as the table is large would be kept. The
// table is cheap to collect around, since nothing in it points anywhere. What the
// operator sets with GOGC and GOMEMLIMIT stands.
func boundProcess(maxMemory int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(config.GarbagePercent(maxMemory))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit, ok := containerMemory("/sys/fs/cgroup/memory.max"); ok {
			debug.SetMemoryLimit(limit / 10 * 9) // A tenth is for what Go does not count.
		}
	}
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
