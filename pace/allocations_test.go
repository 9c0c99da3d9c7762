//go:build !race

package pace_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// TestAllocatesNothing: a permit from an open pacer allocates nothing, with every smoothing.
// After the first waiters, a wait allocates nothing either.
func TestAllocatesNothing(t *testing.T) {
	f := func(headgate.Instant, error) {}
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		ctx := t.Context()
		p, to := scriptedPacer(t, pace.Config{Smoothing: smoothing})
		to.Assign(pace.Assignment{Plan: even(t, schedule.MaxLimit, time.Second, 1, 0), Revision: 1})
		shut, never := scriptedPacer(t, pace.Config{Smoothing: smoothing})
		never.Assign(pace.Assignment{Plan: even(t, 0, time.Second, 1, 0), Revision: 1})
		fast, often := scriptedPacer(t, pace.Config{Smoothing: smoothing})
		often.Assign(pace.Assignment{Plan: even(t, 1, time.Millisecond, 1, 0), Revision: 1})
		notified := make(chan error, 1)
		tell := func(_ headgate.Instant, err error) { notified <- err }
		for name, do := range map[string]func(){
			"Acquire":               func() { must(t, p.Acquire(ctx, time.Second)) },
			"AcquireN":              func() { must(t, p.AcquireN(ctx, 3, pace.Forever)) },
			"TryAcquire":            func() { p.TryAcquire() },
			"AcquireFunc":           func() { p.AcquireFunc(1, time.Second, f) },
			"TryAcquire, shut":      func() { shut.TryAcquire() },
			"AcquireFunc, given up": func() { shut.AcquireFunc(1, pace.Forever, f).Cancel() },
			"AcquireFunc, waits": func() {
				fast.AcquireFunc(1, time.Minute, tell)
				must(t, <-notified)
			},
			"Acquire, waits": func() { must(t, fast.Acquire(ctx, time.Minute)) },
		} {
			if n := testing.AllocsPerRun(200, do); n != 0 {
				t.Errorf("%s %s: %v allocations", smoothing, name, n)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// TestMillionWaiters: a million waiters with callbacks and deadlines use at most 250 MB.
func TestMillionWaiters(t *testing.T) {
	const waiters = 1_000_000
	p, to := scriptedPacer(t, pace.Config{MaxWaiters: waiters})
	calls := 0
	f := func(headgate.Instant, error) { calls++ }
	before := heap()
	for range waiters {
		p.AcquireFunc(1, time.Hour, f)
	}
	if got := p.Stats().Waiters; got != waiters {
		t.Fatalf("%d wait", got)
	}
	used := heap() - before
	t.Logf("%d bytes a waiter", used/waiters)
	if used > 250<<20 {
		t.Errorf("%d MB", used>>20)
	}
	// After a million waiters, the pacer releases their memory.
	to.Assign(pace.Assignment{Plan: even(t, schedule.MaxLimit, time.Second, 1, 0), Revision: 1})
	for p.Stats().Waiters > 0 {
		runtime.Gosched()
	}
	p.Close()
	if calls != waiters {
		t.Errorf("%d were told", calls)
	}
	heap()
	if left := heap() - before; left > 4<<20 {
		t.Errorf("%d MB are left", left>>20)
	}
	runtime.KeepAlive(p)
}

// heap gives the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
