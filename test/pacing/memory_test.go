package pacing

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
)

// TestMemoryOfWaiters: a million who wait, each with a callback of its own and a
// deadline, take at most 250 MB.
func TestMemoryOfWaiters(t *testing.T) {
	const most = 250 // bytes each
	waiters := int(tenthIfRaced(1_000_000))
	// Some hundred a second: the last of a million is served within hours, and hardly
	// anybody while they come.
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
	told := make([]bool, waiters)
	before := heap()
	for i := range waiters {
		p.AcquireFunc(1, day, func(headgate.Instant, error) { told[i] = true })
	}
	used := heap() - before
	n := p.Stats().Waiters
	if n < waiters*99/100 {
		t.Fatalf("%d wait, want %d", n, waiters)
	}
	t.Logf("%d wait, and use %d MB: %d bytes each", n, used/1_000_000, used/int64(n))
	if used > int64(n)*most {
		t.Errorf("%d wait, and use %d bytes each, want at most %d", n, used/int64(n), most)
	}
}

// heap gives the bytes of the heap that are in use, the free parts of spans among them,
// once garbage is collected: what is in pools goes with the third collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
