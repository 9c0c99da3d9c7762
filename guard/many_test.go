package guard_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/store/memory"
)

// heapAndResident gives the heap in use and the resident memory of the process, in bytes. The latter is
// 0 where the system does not report it.
func heapAndResident() (heap, resident int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	raw, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(raw)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		resident = pages * int64(os.Getpagesize())
	}
	return int64(m.HeapInuse), resident
}

// TestThousandGuardsTenThousandLimiters: each guard and limiter has its own default store and one key.
// Each takes a few kilobytes, and their tables are outside the heap.
func TestThousandGuardsTenThousandLimiters(t *testing.T) {
	guards, limiters := make([]*guard.Guard, 1000), make([]*limiter.Keyed, 10_000)
	switch {
	case race.On:
		guards, limiters = guards[:2], limiters[:2] // Under the race detector, the tables are on the heap.
	case strconv.IntSize == 32:
		guards, limiters = guards[:10], limiters[:100] // The address space has room for few more.
	}
	heap, resident := heapAndResident()
	for i := range guards {
		store, err := memory.New(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r := byClient(t, "many", "/p", headgate.Limit{Count: 3, Per: time.Hour})
		guards[i], err = guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		decide(t, guards[i], request("/p", "a"))
	}
	for i := range limiters {
		var err error
		if limiters[i], err = limiter.New(headgate.Limit{Count: 3, Per: time.Hour}, limiter.Config{}); err != nil {
			t.Fatal(err)
		}
		if err := limiters[i].Take(t.Context(), "a", 1, new(headgate.Decision)); err != nil {
			t.Fatal(err)
		}
	}
	heapNow, residentNow := heapAndResident()
	t.Logf("heap %d KiB, resident %d KiB", (heapNow-heap)>>10, (residentNow-resident)>>10)
	if !race.On && (heapNow-heap > 64<<20 || residentNow-resident > 384<<20) {
		t.Errorf("they take %d MiB of the heap and %d MiB in all, want at most 64 and 384", (heapNow-heap)>>20, (residentNow-resident)>>20)
	}
	runtime.KeepAlive(guards)
	runtime.KeepAlive(limiters)
}
