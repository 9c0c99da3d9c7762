package pacing

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// TestMemoryOfWaiters checks that a million waiters, each with a callback and a deadline, use
// at most 250 MB.
func TestMemoryOfWaiters(t *testing.T) {
	const most = 250 // bytes for each waiter
	waiters := int(tenthIfRaced(1_000_000))
	// The limit is some hundred a second. Almost no waiter is served while the test adds
	// them, and no waiter waits longer than its deadline of a day.
	const day = 24 * time.Hour
	plan, err := schedule.Even(20_000_000, day, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pace.New(pace.Config{
		Source: pace.Static(plan), Smoothing: pace.EvenSpread, MaxWaiters: waiters, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	notified := make([]bool, waiters)
	before := heap()
	for i := range waiters {
		p.AcquireFunc(1, day, func(headgate.Instant, error) { notified[i] = true })
	}
	used := heap() - before
	n := p.Stats().Waiters
	if n < waiters*99/100 {
		t.Fatalf("%d callers wait, want at least 99 %% of %d", n, waiters)
	}
	t.Logf("%d waiters use %d MB, %d bytes each", n, used/1_000_000, used/int64(n))
	if used > int64(n)*most {
		t.Errorf("%d waiters use %d bytes each, want at most %d", n, used/int64(n), most)
	}
}

// heap returns the heap bytes in use after garbage collection, including the free parts of
// spans. Only the third collection frees pooled objects.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
