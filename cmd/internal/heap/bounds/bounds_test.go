package bounds

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/headgate/headgate/internal/config"
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
	whole := Heap(parsed, bound)
	for _, c := range []struct{ limit, heap, traffic int64 }{
		{math.MaxInt64, whole, most},
		{whole, whole, most},
		{whole / 4, whole / 4, most / 4},
		{memoryLimit(bound-programBytes, whole, 0), whole / 10 * 9, most / 10 * 9},
	} {
		if fixedHeap(parsed) > 0 && c.limit < whole {
			continue // The tables are on the heap: TestPressureBesideTables has them.
		}
		heap, traffic := pressureBounds(parsed, bound, c.limit)
		if heap != c.heap || max(traffic-c.traffic, c.traffic-traffic) > 1<<10 {
			t.Errorf("with a limit of %d: %d and %d for connections and requests, want %d and %d", c.limit, heap, traffic, c.heap, c.traffic)
		}
	}
}

// TestPressureBesideTables: tables on the heap stay as large when a container or GOMEMLIMIT allows less than the bound, so that the part
// of connections is of what is left beside them. Otherwise connections would be closed later than at 60 percent, or never.
func TestPressureBesideTables(t *testing.T) {
	const mib, cache = 1 << 20, 512 << 20
	parsed, err := config.Parse("test.yaml", []byte("version: 1\nmax_memory: 1MiB\nrules: []\n"+
		"server: {grpc: \"127.0.0.1:0\", rate_limit_service: {local_cache: 512MiB}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	whole := Heap(parsed, parsed.ServerMemoryBound())
	fixed := fixedHeap(parsed)
	if fixed < cache || !memory.OutsideHeap && fixed == cache {
		t.Fatalf("%d bytes of tables", fixed)
	}
	for _, limit := range []int64{fixed + 88*mib, fixed - 112*mib, whole / 2, whole - mib} {
		most, traffic := serverPressureBounds(parsed, limit)
		rest := max(limit-fixed, limit/10)
		if share := float64(traffic) / float64(rest); most != limit ||
			math.Abs(share-float64(parsed.ServerTrafficBound())/float64(whole-fixed)) > 0.01 {
			t.Errorf("with a limit of %d: %d, and %.2f of the rest for connections", limit, most, share)
		}
	}
	if most, traffic := serverPressureBounds(parsed, math.MaxInt64); most != whole || traffic != parsed.ServerTrafficBound() {
		t.Errorf("without a limit: %d, %d", most, traffic)
	}
}

// setMemoryLimit sets Go's memory limit until the test ends.
func setMemoryLimit(t *testing.T, limit int64) {
	t.Helper()
	former := debug.SetMemoryLimit(limit)
	t.Cleanup(func() { debug.SetMemoryLimit(former) })
}

// TestMachineBoundsPressure: the bound that is enforced is never above what the machine has, however much the file or GOMEMLIMIT allows.
func TestMachineBoundsPressure(t *testing.T) {
	parsed, err := config.Parse("test.yaml", []byte("proxy: {upstream: 'http://127.0.0.1:1', max_connections: 1048576}\nversion: 1\nrules: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	setMemoryLimit(t, math.MaxInt64)
	const machine = 2 << 30
	bound := parsed.MemoryBound()
	_, outside := tables(parsed)
	limit := heapLimit(parsed, bound, machine)
	if most, _ := pressureBounds(parsed, bound, limit); bound < machine || most+outside > machine {
		t.Errorf("a bound of %d allows %d beside %d bytes of tables, on a machine with %d", bound, most, outside, machine)
	}
	if limit := heapLimit(parsed, bound, 0); limit < machine {
		t.Errorf("without a known machine the limit is %d", limit)
	}
	for text, want := range map[string]int64{
		"MemTotal:       24684148 kB\nMemFree: 1 kB\n": 24684148 << 10, "": 0, "MemTotal: x kB": 0, "MemTotal: -1 kB": 0,
	} {
		file := filepath.Join(t.TempDir(), "meminfo")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := totalMemory(file); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
	if got := totalMemory(filepath.Join(t.TempDir(), "none")); got != 0 {
		t.Errorf("a missing file: %d bytes", got)
	}
}

func TestContainerMemory(t *testing.T) {
	for text, want := range map[string]int64{"1073741824\n": 1 << 30, "max\n": 0, "": 0, "-1": 0} {
		file := filepath.Join(t.TempDir(), "memory.max")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := containerMemory(file); ok != (want > 0) || ok && got != want {
			t.Errorf("containerMemory of %q = %d, %v", text, got, ok)
		}
	}
	if _, ok := containerMemory(filepath.Join(t.TempDir(), "none")); ok {
		t.Error("containerMemory reads a limit from a missing file")
	}
}
