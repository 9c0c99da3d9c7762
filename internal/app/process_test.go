package app

import (
	"math"
	"testing"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/store/memory"
)

// TestTablesAndTheCollector checks both places of a table. A table outside the heap reduces
// the memory limit, and the collector keeps its default. A table on the heap lowers the
// collector's percentage, and the memory limit stays.
func TestTablesAndTheCollector(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name, store   string
		heap, outside int64
	}{
		{"memory", "store: memory", 0, 256 * mib},
		{"shared", "store: redis://127.0.0.1:1", 64 * mib, 192*mib + 15*mib/2}, // The lists of 96 MiB of blocks take 7.5 MiB.
	} {
		parsed, err := config.Parse("test.yaml", []byte(c.store+"\nmax_memory: 256MiB\nversion: 1\nrules: []\n"))
		if err != nil {
			t.Fatal(err)
		}
		heap, outside := tables(parsed)
		if !memory.OutsideHeap {
			c.heap, c.outside = c.heap+c.outside, 0
		}
		const slack = mib // A quarter of max_memory is computed in percent: the sizes may differ by less than 1 MiB.
		if (heap-c.heap)/slack != 0 || (outside-c.outside)/slack != 0 {
			t.Errorf("%s: %d on the heap and %d outside, want %d and %d", c.name, heap, outside, c.heap, c.outside)
		}
	}
	for _, c := range []struct{ bound, container, outside, want int64 }{
		{5000, 0, 0, 5000},
		{5000, 0, 256, 4744},
		{5000, 1000, 0, 900},
		{5000, 1000, 256, 644},
		{500, 1000, 256, 244},
		{5000, 1000, 900, 250},
		{5000, 1000, 4999, 1}, // The bound is always larger than the table.
	} {
		if got := memoryLimit(c.bound, c.container, c.outside); got != c.want {
			t.Errorf("a bound of %d in a container of %d with %d outside the heap: %d, want %d", c.bound, c.container, c.outside, got, c.want)
		}
	}
}

// TestPressureFollowsTheMemoryLimit: a container or GOMEMLIMIT that allows less than the bound of the process lowers both bounds of pressure.
func TestPressureFollowsTheMemoryLimit(t *testing.T) {
	parsed, err := config.Parse("test.yaml", []byte("proxy: {upstream: 'http://127.0.0.1:1'}\nversion: 1\nrules: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	bound, most := parsed.MemoryBound(), parsed.TrafficBound()
	whole := heapBound(parsed, bound)
	for _, c := range []struct{ limit, heap, traffic int64 }{
		{math.MaxInt64, whole, most},
		{whole, whole, most},
		{whole / 4, whole / 4, most / 4},
		{memoryLimit(bound-programBytes, whole, 0), whole / 10 * 9, most / 10 * 9},
	} {
		heap, traffic := pressureBounds(parsed, bound, c.limit)
		if heap != c.heap || max(traffic-c.traffic, c.traffic-traffic) > 1<<10 {
			t.Errorf("with a limit of %d: %d and %d for connections and requests, want %d and %d", c.limit, heap, traffic, c.heap, c.traffic)
		}
	}
}
