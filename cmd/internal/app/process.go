package app

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/store/memory"
)

// boundProcess configures the garbage collector for a process with large tables of keys.
// By default Go keeps as much garbage as the heap is large. A table on the heap would double
// the memory of the process, and a small heap would be collected all the time.
//
// The memory limit is the bound that headgate check prints, or what the container or the machine has if that
// is lower. Go does not count a table outside the heap, so that its size is subtracted. The
// operator's GOGC and GOMEMLIMIT take precedence.
//
// bound is the most memory of the process, in bytes.
func boundProcess(c *config.Config, bound int64) {
	if os.Getenv("GOGC") == "" {
		heap, _ := tables(c)
		paceCollector(heap)
	}
	limitMemory(c, bound)
}

// limitMemory sets Go's memory limit.
func limitMemory(c *config.Config, bound int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		_, outside := tables(c)
		debug.SetMemoryLimit(memoryLimit(bound-programBytes, MachineMemory(), outside))
	}
}

// reloadedTables returns the configuration of the start with the local cache of next: a reload changes no other bound. It adapts Go's
// memory limit if Run has set it.
func (o *Options) reloadedTables(next *config.Config) *config.Config {
	first := *o.Config
	if first.Server == nil || next.Server == nil {
		return &first
	}
	server := *first.Server
	server.RateLimitService.LocalCache = next.Server.RateLimitService.LocalCache
	first.Server = &server
	if o.bounded {
		bound := first.MemoryBound()
		if o.Server {
			bound = first.ServerMemoryBound()
		}
		limitMemory(&first, bound)
	}
	return &first
}

// heapLimit returns the memory limit for Go that pressure follows: that in force, or less if the container or the machine has less. A
// GOMEMLIMIT above the machine's memory must not let connections fill it.
func heapLimit(c *config.Config, bound, machine int64) int64 {
	_, outside := tables(c)
	return min(debug.SetMemoryLimit(-1), memoryLimit(bound-programBytes, machine, outside))
}

// tables returns the sizes of the tables on the heap and outside the heap, in bytes.
func tables(c *config.Config) (heap, outside int64) {
	own := c.StoreConfig().MaxMemory
	if c.Shared != nil {
		heap = c.MaxMemory - own // The table of prefetched units.
	}
	own += c.BlockLists()
	if memory.OutsideHeap {
		return heap, own
	}
	return heap + own, 0
}

// programBytes is the resident part of the program's file, which Go's memory limit does not count.
const programBytes = 32 << 20

// heapBound returns the most memory that Go counts, in bytes: the bound of the process without the program and the tables outside the
// heap.
func heapBound(c *config.Config, bound int64) int64 {
	_, outside := tables(c)
	return bound - programBytes - outside
}

// pressureBounds returns the most memory that Go counts, and the part of connections and requests. limit is Go's memory limit, which
// a container, the machine or GOMEMLIMIT can make lower than the bound of the process. Tables stay as large as they are, and the part of
// connections and requests is lower in proportion to the rest.
func pressureBounds(c *config.Config, bound, limit int64) (heap, traffic int64) {
	return scaledTo(heapBound(c, bound), c.TrafficBound(), fixedHeap(c), limit)
}

// serverPressureBounds is pressureBounds for headgate server.
func serverPressureBounds(c *config.Config, limit int64) (heap, traffic int64) {
	return scaledTo(heapBound(c, c.ServerMemoryBound()), c.ServerTrafficBound(), fixedHeap(c), limit)
}

// scaledTo lowers both bounds if limit is below heap. fixed is the part of heap for tables; a tenth of limit is beside them in any case.
func scaledTo(heap, traffic, fixed, limit int64) (ownHeap, ownTraffic int64) {
	if limit = max(limit, 1<<10); limit >= heap {
		return heap, traffic
	}
	return limit, int64(float64(traffic) / float64(heap-fixed) * float64(max(limit-fixed, limit/10)))
}

// memoryLimit returns Go's memory limit in bytes: the bound without the tables outside the
// heap. In a container (0 means none) the limit is at most 9/10 of the container's memory,
// because Go does not count all memory. It is at least 1/4 of that memory: with a lower
// limit the collector would run all the time.
func memoryLimit(bound, container, outside int64) int64 {
	if container == 0 {
		return bound - outside
	}
	return min(bound-outside, max(container/10*9-outside, container/4))
}

// MachineMemory returns the memory of the machine in bytes, or the limit of the process's container if that is lower. It is 0 where the
// system tells neither.
func MachineMemory() int64 {
	container, _ := containerMemory("/sys/fs/cgroup/memory.max")
	machine := totalMemory("/proc/meminfo")
	if container == 0 || machine > 0 && machine < container {
		return machine
	}
	return container
}

// totalMemory returns MemTotal of Linux in bytes; 0 without it. The file counts in KiB.
func totalMemory(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "MemTotal:")
	line, _, _ := strings.Cut(after, "kB")
	kib, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || kib < 0 {
		return 0
	}
	return kib << 10
}

// containerMemory returns the memory limit of the process's container in bytes.
func containerMemory(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return limit, err == nil && limit > 0 // The file has "max" when there is no limit.
}
