package check

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/store/memory"
)

// TestBlocksAreThoseOfTheStore compares BlockBytes with the bytes that package memory allocates
// for a key at its limit.
func TestBlocksAreThoseOfTheStore(t *testing.T) {
	var policies []headgate.Policy
	for _, n := range []int64{1, 2, 5, 100, 500, 2045, 2046, 2047, 10_000} {
		policies = append(policies, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: n, Per: time.Hour}})
	}
	for _, n := range []int64{1, 5, 6, 2045} {
		policies = append(policies, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: n, Per: time.Hour}, CountRejected: true})
	}
	for _, n := range []int{1, 4, 5, 12, 13, 60, 61, limit.MaxSubWindows} {
		policies = append(policies, headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: n, Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	}
	for _, p := range policies {
		if got, want := lent(t, p), BlockBytes(p); got != want {
			t.Errorf("%s %s with %d sub-windows: package memory allocates %d bytes of blocks, want %d as BlockBytes says", p.Algorithm, p.Limit, p.SubWindows, got, want)
		}
	}
}

// lent uses the policy's whole count, each unit at a different time, and returns the bytes
// of blocks that the store allocates.
func lent(t *testing.T, p headgate.Policy) int64 {
	t.Helper()
	now := headgate.Instant(time.Hour)
	s, err := memory.New(memory.Config{Clock: func() headgate.Instant { now++; return now }})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	var d [1]headgate.Decision
	for range p.Limit.Count + 1 {
		if err := s.Apply(t.Context(), []headgate.Op{{Key: "a", Policy: id, Cost: 1}}, d[:]); err != nil {
			t.Fatal(err)
		}
	}
	if d[0].Verdict != headgate.Deny {
		t.Fatalf("%v: the request after the whole count was allowed, want it denied", p)
	}
	return s.Stats().BlockBytesLent
}

// TestMemoryFixHelps: the max_memory that a finding recommends is enough, and at most 2 MiB
// too much.
func TestMemoryFixHelps(t *testing.T) {
	for _, n := range []Need{{TableBytes: 32}, {TableBytes: 32, BlockBytes: 1 << 24}, {TableBytes: 512, BlockBytes: 3 << 20}} {
		keys := func(total int64) int64 {
			return min(total/2/n.TableBytes, total/100*BlockPercent/max(n.BlockBytes, 1))
		}
		if total := enough(n); keys(total) < LeastKeys || total > 1<<20 && keys(total-2<<20) >= LeastKeys {
			t.Errorf("%+v with max_memory %d: %d keys fit, want at least LeastKeys, and fewer with 2 MiB less", n, total, keys(total))
		}
	}
}
