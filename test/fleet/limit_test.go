//go:build unix

package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/etcd"
)

// TestEightProcesses: eight processes use the whole limit, and no second has more.
func TestEightProcesses(t *testing.T) {
	for _, c := range []struct {
		limit     int64
		smoothing pace.Smoothing
	}{{1_000, pace.Off}, {1_000, pace.PID}, {50_000, pace.Off}} {
		t.Run(fmt.Sprint(c.limit, " ", c.smoothing), func(t *testing.T) {
			if c.limit < 10_000 {
				t.Parallel()
			}
			f := newFleet(t, c.limit, orders{Smoothing: c.smoothing})
			f.start(8)
			from := f.settled(c.limit, 8)
			f.until(from + 4)
			f.never(c.limit, f.orders.First, from+4)
			f.used(0.995, c.limit, from, from+4)
		})
	}
}

// TestLimitChanges: while the limit is lowered and raised no second has more than the
// greater of both, and soon all is the new one.
func TestLimitChanges(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5_000, orders{})
	f.start(4)
	before := f.settled(5_000, 4)
	for _, next := range []struct{ old, limit int64 }{{5_000, 300}, {300, 20_000}, {20_000, 0}, {0, 1_000}} {
		f.set(next.limit)
		f.orders.Depth = int(next.limit)
		from := now() + 3 // The propagation bound, the edge, and some time for a busy machine.
		f.until(from + 2)
		f.never(max(next.old, next.limit), before, from)
		f.never(next.limit, from, from+2)
		if next.limit > 0 {
			f.used(0.995, next.limit, from, from+2)
		}
		before = from
	}
}

// TestTwoJoinAtOnce: the parts of those who join come from the others at one edge.
func TestTwoJoinAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2_000, orders{})
	f.start(3)
	f.settled(2_000, 3)
	f.start(2)
	from := f.settled(2_000, 5)
	f.until(from + 1)
	f.never(2_000, f.orders.First, from+1)
	for i, m := range f.all {
		if n := m.in(f, from); n != 400 {
			t.Errorf("process %d has %d of 2,000", i, n)
		}
	}
	f.leave(f.all[1]) // Whoever leaves gives its part back at once, without waiting for its lease.
	left := now()
	from = f.settled(2_000, 4)
	if took := from - left; took > 4 {
		t.Errorf("the part of who left is back after %d s", took)
	}
	f.never(2_000, f.orders.First, from)
}

// TestBusyProcess: with balance demand, one that is asked for much uses what the others
// leave, and what it had comes back to them when they ask for it.
func TestBusyProcess(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1_000, orders{})
	byDemand := etcd.Limit{Count: 1_000, Per: time.Second, Balance: etcd.Demand}
	if _, err := f.limits.Set(t.Context(), provider, byDemand, etcd.AnyRevision); err != nil {
		t.Fatal(err)
	}
	idle := f.start(3, func(o *orders) { o.Depth = 0 })
	busy := f.start(1)[0]
	reach := func(m *member, units int64) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); m.in(f, now()-1) < units; f.until(now() + 1) {
			if time.Now().After(deadline) {
				t.Fatalf("it has %d in a second, want %d: %v", m.in(f, now()-1), units, f.history(f.orders.First, now()))
			}
		}
	}
	f.until(now() + 1)
	reach(busy, 900) // An even part is 250; those who are idle keep a tenth of theirs.
	f.leave(idle[0])
	f.until(now() + 1)
	reach(f.start(1)[0], 400)
	f.never(1_000, f.orders.First, now())
}
