// Package bounds computes the bounds of the memory of a process from its configuration, and sets those of Go's collector.
package bounds

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/store/memory"
)

// Process has the bounds of the memory of a process, by the configuration of its start.
type Process struct {
	First *config.Config
	// Server says that the process serves the section server, and not the proxy.
	Server bool
	// Followed says that Set has set Go's memory limit, which then follows reloads.
	Followed bool
}

// Set configures the garbage collector for a process with large tables of keys.
// By default Go keeps as much garbage as the heap is large. A table on the heap would double
// the memory of the process, and a small heap would be collected all the time.
//
// The memory limit is the bound that headgate check prints, or what the container or the machine has if that
// is lower. Go does not count a table outside the heap, so that its size is subtracted. The
// operator's GOGC and GOMEMLIMIT take precedence.
func (p *Process) Set() {
	if os.Getenv("GOGC") == "" {
		heap, _ := tables(p.First)
		paceCollector(heap)
	}
	limitMemory(p.First, p.bound(p.First))
	p.Followed = true
}

// bound is the most memory of the process, in bytes.
func (p *Process) bound(c *config.Config) int64 {
	if p.Server {
		return c.ServerMemoryBound()
	}
	return c.MemoryBound()
}

// limitMemory sets Go's memory limit.
func limitMemory(c *config.Config, bound int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		_, outside := tables(c)
		debug.SetMemoryLimit(memoryLimit(bound-programBytes, MachineMemory(), outside))
	}
}

// Now returns the bounds of connections and requests.
func (p *Process) Now() heap.Bounds { return p.of(p.First) }

// Reloaded returns the bounds with the local cache of next: a reload changes no other bound. It adapts Go's
// memory limit if Set has set it.
func (p *Process) Reloaded(next *config.Config) heap.Bounds {
	first := *p.First
	if first.Server == nil || next.Server == nil {
		return p.of(&first)
	}
	server := *first.Server
	server.RateLimitService.LocalCache = next.Server.RateLimitService.LocalCache
	first.Server = &server
	if p.Followed {
		limitMemory(&first, p.bound(&first))
	}
	return p.of(&first)
}

// leastTrafficShare is the part of the bound that connections of headgate server take at least when they are closed. With less, receipts
// and leases of other clients take the memory.
const leastTrafficShare = 4

// of returns the bounds of a configuration with the tables in force. Connections of the proxy are closed only while they take half of
// what is meant for them.
func (p *Process) of(c *config.Config) heap.Bounds {
	limit := heapLimit(c, p.bound(c), MachineMemory())
	if p.Server {
		most, traffic := serverPressureBounds(c, limit)
		return heap.Bounds{Most: most, Fixed: fixedHeap(c), Least: traffic / leastTrafficShare}
	}
	most, traffic := pressureBounds(c, c.MemoryBound(), limit)
	return heap.Bounds{Most: most, Fixed: fixedHeap(c), Least: traffic / 2}
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

// Heap returns the most memory that Go counts, in bytes: the bound of the process without the program and the tables outside the
// heap.
func Heap(c *config.Config, bound int64) int64 {
	_, outside := tables(c)
	return bound - programBytes - outside
}

// pressureBounds returns the most memory that Go counts, and the part of connections and requests. limit is Go's memory limit, which
// a container, the machine or GOMEMLIMIT can make lower than the bound of the process. Tables stay as large as they are, and the part of
// connections and requests is lower in proportion to the rest.
func pressureBounds(c *config.Config, bound, limit int64) (heap, traffic int64) {
	return scaledTo(Heap(c, bound), c.TrafficBound(), fixedHeap(c), limit)
}

// serverPressureBounds is pressureBounds for headgate server.
func serverPressureBounds(c *config.Config, limit int64) (heap, traffic int64) {
	return scaledTo(Heap(c, c.ServerMemoryBound()), c.ServerTrafficBound(), fixedHeap(c), limit)
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

// fixedHeap returns the bytes of tables on the heap, which no client makes larger.
func fixedHeap(c *config.Config) int64 {
	fixed, _ := tables(c)
	if c.Server != nil {
		fixed += c.Server.RateLimitService.LocalCache
	}
	return fixed
}
