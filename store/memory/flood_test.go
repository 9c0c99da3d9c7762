package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// table makes a store with places for this many keys, and no blocks.
func table(tb testing.TB, keys int64, onFull headgate.Verdict, clock *storetest.Clock) *memory.Store {
	tb.Helper()
	s, err := memory.New(memory.Config{MaxMemory: keys * 32, BlockShare: -1, AllowOnFull: onFull == headgate.Allow, Clock: clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func prepare(tb testing.TB, s *memory.Store, p headgate.Policy) headgate.PolicyID {
	tb.Helper()
	id, err := s.Prepare(p)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// count takes one unit n times, and counts the takes that pass.
func count(tb testing.TB, s *memory.Store, key string, id headgate.PolicyID, n int) int {
	tb.Helper()
	passed := 0
	for range n {
		var d headgate.Decision
		if err := s.Take(&headgate.Op{Key: key, Policy: id, Cost: 1}, &d); err != nil {
			tb.Fatal(err)
		}
		if d.Verdict == headgate.Allow {
			passed++
		}
	}
	return passed
}

// scale reduces the floods to a fortieth under the race detector. The tests also run without it.
func scale(n int) int { return race.Fewer(n, n/40) }

// TestFloodEvictsNoLimitedKey: a table for a million keys sees five million new keys. A key
// with a limit of 10 an hour still passes exactly 10 times.
func TestFloodEvictsNoLimitedKey(t *testing.T) {
	clock := storetest.NewClock()
	s := table(t, int64(scale(1_000_000)), headgate.Deny, clock)
	id := prepare(t, s, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	if n := count(t, s, "victim", id, 12); n != 10 {
		t.Fatalf("%d passed before the flood, want 10", n)
	}
	var flood sync.WaitGroup
	for g := range 4 {
		flood.Go(func() {
			var d headgate.Decision
			for i := range scale(1_250_000) {
				_ = s.Take(&headgate.Op{Key: fmt.Sprintf("%d-%d", g, i), Policy: id, Cost: 1}, &d)
			}
		})
	}
	flood.Wait()
	if n := count(t, s, "victim", id, 100); n != 0 {
		t.Errorf("%d more passed after the flood", n)
	}
	stats := s.Stats()
	if stats.Evicted < uint64(scale(3_000_000)) || stats.Used > stats.Places {
		t.Errorf("stats %+v: want most of the flood to have made room for the rest, within the table", stats)
	}
	clock.Advance(6 * time.Minute)
	if n := count(t, s, "victim", id, 100); n != 1 {
		t.Errorf("%d passed six minutes later, want the 1 that refilled", n)
	}
}

// TestQuarterLimited: a quarter of the places hold limited keys. A flood of new keys, one for
// each place, lets none of the limited keys pass again.
func TestQuarterLimited(t *testing.T) {
	clock := storetest.NewClock()
	places := scale(200_000)
	s := table(t, int64(places), headgate.Deny, clock)
	id := prepare(t, s, headgate.Policy{Limit: headgate.Limit{Count: 2, Per: time.Hour}})
	for i := range places / 4 {
		count(t, s, fmt.Sprintf("limited-%d", i), id, 2)
	}
	for i := range 2 * places {
		count(t, s, fmt.Sprintf("flood-%d", i), id, 1)
	}
	for i := range places / 4 {
		if n := count(t, s, fmt.Sprintf("limited-%d", i), id, 1); n != 0 {
			t.Fatalf("limited key %d passed again", i)
		}
	}
	if refused := s.Stats().Refused; refused != 0 {
		t.Errorf("%d newcomers were refused, though three quarters of the places hold nothing limited", refused)
	}
}

// TestOnFull: when every place holds a limited key, AllowOnFull decides on a new key.
func TestOnFull(t *testing.T) {
	for _, verdict := range []headgate.Verdict{headgate.Deny, headgate.Allow} {
		t.Run(verdict.String(), func(t *testing.T) {
			clock := storetest.NewClock()
			s := table(t, 2048, verdict, clock)
			id := prepare(t, s, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Hour}})
			for i := range 20 * 2048 {
				count(t, s, fmt.Sprintf("key-%d", i), id, 1)
			}
			var d headgate.Decision
			_ = s.Take(&headgate.Op{Key: "newcomer", Policy: id, Cost: 1}, &d)
			if d.Verdict != verdict || d.Reason != headgate.StoreFull || !d.Receipt.Empty() {
				t.Errorf("the newcomer: %v %v, receipt %+v", d.Verdict, d.Reason, d.Receipt)
			}
			if s.Stats().Refused == 0 || s.Stats().Evicted != 0 {
				t.Errorf("stats %+v: want refusals and no eviction", s.Stats())
			}
			clock.Advance(time.Hour)
			if n := count(t, s, "newcomer", id, 2); n != 1 {
				t.Errorf("an hour later %d passed, want 1: refilled places are free", n)
			}
		})
	}
}

// TestBlocksRunOut: logs and sliding windows that need more memory than the blocks have
// evict keys that are not limited. Without such keys AllowOnFull decides, and counts nothing.
func TestBlocksRunOut(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.SlidingLog, headgate.SlidingWindow} {
		t.Run(a.String(), func(t *testing.T) {
			clock := storetest.NewClock()
			s, err := memory.New(memory.Config{MaxMemory: 1 << 20, BlockShare: 20, Clock: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 40, Per: time.Hour}}
			if a == headgate.SlidingWindow {
				p.SubWindows = 60
			}
			id := prepare(t, s, p)
			if n := count(t, s, "victim", id, 50); n != 40 {
				t.Fatalf("%d passed, want 40", n)
			}
			for i := range race.Fewer(20_000, 4_000) { // Each key keeps some units of its limit.
				count(t, s, fmt.Sprintf("flood-%d", i), id, 3)
			}
			if n := count(t, s, "victim", id, 10); n != 0 {
				t.Errorf("%d more passed after the flood", n)
			}
			stats := s.Stats()
			if stats.BlockBytesLent > stats.BlockBytes || stats.Evicted == 0 {
				t.Errorf("stats %+v: want evictions, and blocks within their memory", stats)
			}
			clock.Advance(3 * time.Hour)
			if n := count(t, s, "victim", id, 50); n != 40 {
				t.Errorf("three hours later %d passed, want 40", n)
			}
		})
	}
}

// TestPrepareRefusesWhatCannotFit: Prepare refuses a log that is larger than any block.
func TestPrepareRefusesWhatCannotFit(t *testing.T) {
	s, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1_000_000, Per: time.Hour}}); err == nil {
		t.Error("a log of 16 MB fits into 512 KiB")
	}
}

// TestConfigFaults: the error of New names the invalid setting.
func TestConfigFaults(t *testing.T) {
	for _, c := range []memory.Config{{MaxMemory: 1}, {BlockShare: 91}} {
		if _, err := memory.New(c); err == nil {
			t.Errorf("New(%+v) succeeds", c)
		}
	}
}
