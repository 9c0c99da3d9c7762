package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// TestIdleBlocksAnywhere: a few logs of 16 KiB hold all blocks, far apart in the table. When these
// logs have expired, each new key gets a block at once, and its log can grow to the limit.
func TestIdleBlocksAnywhere(t *testing.T) {
	const limit, old = 1000, 1100
	clock := storetest.NewClock()
	s, err := memory.New(memory.Config{MaxMemory: 32 << 20, Clock: clock.Now}) // 512 places for each log.
	if err != nil {
		t.Fatal(err)
	}
	id := prepare(t, s, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: limit, Per: time.Hour}})
	small := prepare(t, s, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2, Per: 3 * time.Hour}})
	takes := func(key string) int { // Each unit at a time of its own, so that the log is as long as can be.
		passed := 0
		for range limit + 1 {
			clock.Advance(time.Microsecond)
			passed += count(t, s, key, id, 1)
		}
		return passed
	}
	for i := range old {
		takes(fmt.Sprintf("old %d", i))
	}
	if stats := s.Stats(); stats.BlockBytes-stats.BlockBytesLent > 64<<10 {
		t.Fatalf("stats %+v: want all blocks in use", stats)
	}
	var d headgate.Decision
	_ = s.Take(&headgate.Op{Key: "early", Policy: id, Cost: 1}, &d)
	if d.Reason == headgate.StoreFull && (d.RetryAfter <= 0 || d.RetryAfter > time.Hour) {
		t.Errorf("before the logs expire: %+v, want a RetryAfter within an hour", d)
	}
	clock.Advance(time.Hour + time.Second)
	for i := range 200 {
		if n := takes(fmt.Sprintf("new %d", i)); n != limit {
			t.Fatalf("new key %d passed %d times, want %d: %+v", i, n, limit, s.Stats())
		}
	}
	for i := range 20_000 { // Small blocks of many keys, which must join again.
		count(t, s, fmt.Sprintf("small %d", i), small, 2)
	}
	clock.Advance(4 * time.Hour)
	for i := range 1000 {
		if n := takes(fmt.Sprintf("late %d", i)); n != limit {
			t.Fatalf("late key %d passed %d times, want %d: %+v", i, n, limit, s.Stats())
		}
	}
}
