package limiter

import (
	"runtime"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/alone"
	"github.com/headgate/headgate/internal/testkit/race"
)

// heapOf returns the heap in use after a garbage collection.
func heapOf() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// TestManyLimiters checks that a thousand limiters with one key each use little heap, and
// that their tables use none.
func TestManyLimiters(t *testing.T) {
	if race.On {
		t.Log("under the race detector, tables are on the heap: the test uses one limiter")
	}
	n := 1000
	switch {
	case race.On:
		n = 1
	case strconv.IntSize == 32:
		n = 100 // The address space is exhausted at about 700.
	}
	before := heapOf()
	all := make([]*Keyed, n)
	for i := range all {
		all[i] = counted(t, i, Config{})
	}
	used := heapOf() - before
	if most := int64(n)*8<<10 + 1<<20; !race.On && used > most {
		t.Errorf("%d limiters use %d bytes of the heap, want at most %d", n, used, most)
	}
	t.Logf("%d limiters: %d bytes of the heap each", n, used/int64(n))
	runtime.KeepAlive(all)
}

func counted(t *testing.T, i int, c Config) *Keyed {
	t.Helper()
	k, err := New(headgate.Limit{Count: 2, Per: time.Hour}, c)
	if err != nil {
		t.Fatal(err)
	}
	var d headgate.Decision
	if err := k.Take(t.Context(), strconv.Itoa(i), 1, &d); err != nil || d.Remaining != 1 {
		t.Fatal(d, err)
	}
	return k
}

// TestLimitersThatGo checks that a limiter decides correctly while other limiters are
// dropped and collected. The memory of a limiter is released only when the limiter is
// unreachable.
func TestLimitersThatGo(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50 {
			runtime.GC()
		}
	}()
	for i := 0; ; i++ {
		counted(t, i, Config{MaxMemory: 64 << 10}) // 32-bit systems do not have the address space for many tables of 4 MiB.
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestSingleHasNoTable checks that a Single of any algorithm takes a few hundred bytes.
func TestSingleHasNoTable(t *testing.T) {
	for _, algorithm := range headgate.Algorithms() {
		c := Config{Algorithm: algorithm}
		if algorithm == headgate.SlidingWindow {
			c.SubWindows = 4
		}
		const n = 1000
		all, before := make([]*Single, n), heapOf()
		for i := range all {
			s, err := NewSingle(headgate.Limit{Count: 3, Per: time.Hour}, c)
			if err != nil {
				t.Fatal(err)
			}
			var d headgate.Decision
			if err := s.Take(1, &d); err != nil || d.Verdict != headgate.Allow {
				t.Fatal(d, err)
			}
			all[i] = s
		}
		if used := heapOf() - before; used > n*2048+1<<20 {
			t.Errorf("%d limiters of %v use %d bytes", n, algorithm, used)
		}
		runtime.KeepAlive(all)
	}
}

// TestLimitersAndTheMemoryLimit checks that the tables of four default limiters do not count
// towards GOMEMLIMIT, so that they do not slow down the program's allocations.
func TestLimitersAndTheMemoryLimit(t *testing.T) {
	if race.On {
		t.Log("under the race detector tables are on the heap")
	}
	if !alone.Here(t) { // After other tests, the heap may grow by 4 MiB at any allocation.
		return
	}
	total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(total)
	before := total[0].Value.Uint64()
	var all [4]*Keyed
	for i := range all {
		all[i] = counted(t, i, Config{})
	}
	metrics.Read(total)
	if used := int64(total[0].Value.Uint64() - before); !race.On && used > 4<<20 {
		t.Errorf("four limiters use %d bytes that count towards GOMEMLIMIT", used)
	}
	runtime.KeepAlive(all)
}
