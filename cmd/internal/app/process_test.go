package app

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/headgate/headgate/cmd/internal/heap"
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
	whole := heapBound(parsed, bound)
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
	parsed := serverConfig(t, "server: {grpc: \"127.0.0.1:0\", rate_limit_service: {local_cache: 512MiB}}")
	whole := heapBound(parsed, parsed.ServerMemoryBound())
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

// TestPressureFollowsTheLocalCache: a reload that changes the local cache changes the bounds of memory too. Its memory counts from the
// start: a table is allocated at once.
func TestPressureFollowsTheLocalCache(t *testing.T) {
	const settings = "server: {grpc: \"127.0.0.1:0\", max_traffic_memory: 128MiB, rate_limit_service: {local_cache: %dMiB}}"
	o := serverOptions(t, fmt.Sprintf(settings, 1))
	o.bounded = true // As Run does.
	t.Setenv("GOMEMLIMIT", "")
	setMemoryLimit(t, heapBound(o.Config, o.Config.ServerMemoryBound()))
	next := o.Config
	o.Load = func() (*config.Config, error) { return next, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Stop() })
	var front *decisionServer
	for _, c := range i.components {
		if d, ok := c.(*decisionServer); ok {
			front = d
		}
	}
	before := front.memory.Load().Bounds()
	runtime.GC() // Other tests have left garbage, and what a finalizer kept goes with the second collection.
	runtime.GC()
	objects, _ := heap.Live()
	next = serverConfig(t, fmt.Sprintf(settings, 64))
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	const more, garbage = 63 << 20, 63 << 20 / 8
	now := front.memory.Load().Bounds()
	if now.Fixed-before.Fixed != more || now.Most-before.Most < more || now.Most-before.Most > more+garbage {
		t.Errorf("the bounds are %+v, after %+v", now, before)
	}
	runtime.GC()
	if after, _ := heap.Live(); after-objects < more/2 {
		t.Errorf("%d bytes were live, and are %d", objects, after)
	}
}

// TestProxyFollowsTheLocalCache: headgate proxy has the local cache of a section server too: its bound counts the cache, and follows a
// reload.
func TestProxyFollowsTheLocalCache(t *testing.T) {
	const settings = "server: {grpc: \"127.0.0.1:0\", rate_limit_service: {local_cache: %dMiB}}"
	c := launch(t, fmt.Sprintf(settings, 1))
	var front *proxyServer
	for _, part := range c.components {
		if p, ok := part.(*proxyServer); ok {
			front = p
		}
	}
	before, bound := front.server.Bounds(), c.next.MemoryBound()
	c.reload(t, fmt.Sprintf(settings, 64), adminPorts)
	const more = 63 << 20
	if now := front.server.Bounds(); now.Fixed-before.Fixed != more || c.next.MemoryBound()-bound < more {
		t.Errorf("the bounds are %+v of %d, after %+v of %d", now, c.next.MemoryBound(), before, bound)
	}
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
