package fairshare

import (
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// FuzzTake uses arbitrary names, costs and times. Every request gets a decision, and no cycle
// admits more than the capacity.
func FuzzTake(f *testing.F) {
	f.Add("A", "B", int64(1), int64(1), int64(0), int64(1), int64(2), int64(40), false)
	f.Add("", Others, int64(0), int64(-1), int64(5), int64(0), int64(-5), int64(0), true)
	f.Add("\x00\xff", "a\nb", int64(math.MinInt64), int64(math.MaxInt64), int64(1)<<61, int64(1)<<61, int64(1)<<61, int64(1), false)
	f.Add("A", "A", int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(-1)<<62, int64(1)<<62, int64(share.MaxCapacity), true)
	f.Add("A", "B", int64(7), int64(7), int64(math.MinInt64), int64(0), int64(math.MaxInt64), int64(40), false)
	f.Add("A", "B", int64(7), int64(7), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), int64(40), true)
	f.Add("A", "B", int64(7), int64(7), int64(math.MinInt64), int64(math.MinInt64+1), int64(math.MinInt64), int64(40), true)
	f.Add("0", "0", int64(172), int64(45), int64(-33), int64(1), int64(2), int64(40), true)
	f.Fuzz(func(t *testing.T, a, b string, costA, costB, first, second, third, capacity int64, next bool) {
		c := Config{
			Capacity: max(0, min(capacity, share.MaxCapacity)), Cycle: time.Second, Reservation: 10,
			NewClientsPerCycle: 1, ForgetAfter: 2, MaxClients: 2, CountOnce: true,
		}
		if next {
			c.Reclaim = NextCycle
		}
		l, err := New(headgate.Instant(first), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, now := range []int64{first, second, third, third, second, first} {
			var admitted int64
			for range 3 {
				for _, r := range []Request{{a, costA, b}, {b, costB, a}, {a + b, costA, ""}} {
					d, receipt := l.Take(headgate.Instant(now), r)
					checkFuzzed(t, headgate.Instant(now), &d, receipt, c)
					if d.Verdict == headgate.Allow {
						admitted += receipt.cost
					}
				}
			}
			if b, fault := ledgerOf(l); b.sum() != c.Capacity || fault != "" || admitted > c.Capacity {
				t.Fatalf("at %d: %d of %d units are admitted, but the limiter has %+v %s", now, admitted, c.Capacity, b, fault)
			}
			s := l.Shares(headgate.Instant(now))
			if len(s.Clients) > c.MaxClients+1 || s.Admitted > s.Capacity {
				t.Fatalf("at %d: %+v", now, s)
			}
		}
	})
}

func checkFuzzed(t *testing.T, now headgate.Instant, d *headgate.Decision, receipt Receipt, c Config) {
	t.Helper()
	now = clampTime(now) // No clock shows times beyond these bounds.
	switch {
	case d.Verdict == headgate.Allow && d.Reason == headgate.WithinLimit:
		if receipt.cell == nil || receipt.cost < 1 || receipt.cost > c.Capacity {
			t.Fatalf("the receipt of the decision %+v has cost %d", d, receipt.cost)
		}
	case d.Verdict == headgate.Deny && (d.Reason == headgate.OverShare || d.Reason == headgate.Never):
		if (receipt != Receipt{}) {
			t.Fatalf("the refusal %+v has a receipt with cost %d", d, receipt.cost)
		}
	default:
		t.Fatalf("invalid decision %+v", d)
	}
	if d.At < now || d.Limit < 0 || d.Limit > c.Capacity || d.Remaining < 0 || d.Remaining > d.Limit {
		t.Fatalf("at %d: %+v", now, d)
	}
	if d.ResetAfter <= 0 || d.ResetAfter > c.Cycle {
		t.Fatalf("at %d: a cycle of length %v ends in %v", now, c.Cycle, d.ResetAfter)
	}
	checkRetry(t, d, c.Cycle)
}
