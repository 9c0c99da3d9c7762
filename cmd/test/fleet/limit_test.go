//go:build unix

package fleet

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/pace"
)

// TestEightProcesses checks that eight processes use the whole limit, and never more in a second.
func TestEightProcesses(t *testing.T) {
	for _, c := range []struct {
		limit     int64
		smoothing pace.Smoothing
	}{{1_000, pace.Off}, {1_000, pace.PID}, {50_000, pace.Off}} {
		t.Run(fmt.Sprint(c.limit, " ", c.smoothing), func(t *testing.T) {
			if c.limit < 10_000 {
				t.Parallel()
			}
			f := newFleet(t, c.limit, settings{Smoothing: c.smoothing})
			f.start(8)
			from := f.settled(c.limit, 8)
			f.until(from + 4)
			f.never(c.limit, f.settings.First, from+4)
			f.used(0.995, c.limit, from, from+4)
		})
	}
}

// TestLimitChanges lowers and raises the limit. During a change, no second has more than the
// larger of both limits. Soon after it, the whole new limit is used.
func TestLimitChanges(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5_000, settings{})
	f.start(4)
	before := f.settled(5_000, 4)
	for _, next := range []struct{ old, limit int64 }{{5_000, 300}, {300, 20_000}, {20_000, 0}, {0, 1_000}} {
		f.set(next.limit)
		f.settings.Depth = int(next.limit)
		from := now() + 3 // This covers the propagation bound, the edge, and delays of a busy machine.
		f.until(from + 2)
		f.never(max(next.old, next.limit), before, from)
		f.never(next.limit, from, from+2)
		if next.limit > 0 {
			f.used(0.995, next.limit, from, from+2)
		}
		before = from
	}
}

// TestTwoJoinAtOnce starts two processes at the same time. Both get their parts at the same edge.
func TestTwoJoinAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2_000, settings{})
	f.start(3)
	f.settled(2_000, 3)
	f.start(2)
	from := f.settled(2_000, 5)
	f.until(from + 1)
	f.never(2_000, f.settings.First, from+1)
	for i, m := range f.all {
		if n := m.in(f, from); n != 400 {
			t.Errorf("process %d has %d units in a second, want 400 of 2,000", i, n)
		}
	}
	f.leave(f.all[1]) // The process revokes its lease, so the others get its part without waiting for the TTL.
	left := now()
	from = f.settled(2_000, 4)
	if elapsed := from - left; elapsed > 4 {
		t.Errorf("the part of the ended process is used again after %d s, want at most 4", elapsed)
	}
	f.never(2_000, f.settings.First, from)
}
