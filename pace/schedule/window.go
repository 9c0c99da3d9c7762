package schedule

import (
	"math"
	"slices"

	"github.com/headgate/headgate"
)

// Window is one window of an instance.
type Window struct {
	Number   int64
	Start    headgate.Instant // by the wall clock
	Plan     Plan             // the newest plan that holds in it and is settled
	Part     int64            // units
	Revision int64
	// Revised is the earliest wall time, later than the one asked for, at which a known
	// plan begins.
	Revised headgate.Instant
}

// At gives the window that the wall time is in, as known at the monotonic time, and
// forgets what newer plans have replaced by then. It is false before the first plan begins.
//
// The newest plan of those that have begun and were settled when the window began gives
// the part. Those that are newer and have begun can only lessen it. So when all
// instances know each plan, or have stopped, by the time from which it is settled for
// anybody, their parts of one window never add up to more than the limit of one of the
// plans: the package's comment proves it.
func (t *Timeline) At(wall, mono headgate.Instant) (Window, bool) {
	base, settled := t.base(wall, mono)
	if base < 0 {
		return Window{Revised: t.next()}, false
	}
	if settled {
		t.changes = slices.Delete(t.changes, 0, base)
		base = 0
	}
	c := &t.changes[base]
	w := Window{Number: c.Window(wall), Plan: c.Plan, Revision: c.Revision, Revised: t.next()}
	w.Start = c.Start(w.Number)
	if !settled {
		return w, true
	}
	w.Part = c.Part(w.Number)
	for i := range t.changes[1:] {
		if later := &t.changes[1+i]; later.begun {
			w.Part = min(w.Part, lesser(later.Plan, c.Plan, w.Number))
		}
	}
	return w, true
}

// lesser gives what a plan leaves of window w of another: of windows of another length
// nothing, since their parts cannot be compared.
func lesser(p, of Plan, w int64) int64 {
	if p.Per != of.Per {
		return 0
	}
	return p.Part(w)
}

// base gives the index of the newest change that has begun and is settled, else of the
// oldest that has begun; -1 when there is none.
func (t *Timeline) base(wall, mono headgate.Instant) (base int, settled bool) {
	base = -1
	for i := range t.changes {
		c := &t.changes[i]
		c.begun = c.begun || c.From <= wall
		switch {
		case !c.begun:
		case c.settled(wall, mono):
			base, settled = i, true
		case base < 0:
			base = i
		}
	}
	return base, settled
}

// settled says whether the change was settled when the window began that wall is in.
func (c *change) settled(wall, mono headgate.Instant) bool {
	elapsed := max(wall-c.Start(c.Window(wall)), 0)
	return c.Settled == 0 || plus(int64(c.Settled), int64(elapsed)) <= int64(mono)
}

// next gives when the next change begins.
func (t *Timeline) next() headgate.Instant {
	next := headgate.Instant(math.MaxInt64)
	for i := range t.changes {
		if c := &t.changes[i]; !c.begun {
			next = min(next, c.From)
		}
	}
	return next
}
