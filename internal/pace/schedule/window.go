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
	Plan     Plan             // the newest plan that has begun and is settled
	Part     int64            // units
	Revision int64
	// Revised is the wall time at which the next known plan begins.
	Revised headgate.Instant
}

// At returns the window that contains the wall time, as known at the monotonic time. It
// forgets plans that newer plans have replaced. ok is false before the first plan begins.
//
// The part comes from the newest plan that has begun and was settled when the window began.
// Newer plans that have begun can only lower the part. Suppose that each plan is known to all
// instances that have not stopped before it is settled for any instance. Then the parts of a
// window never add up to more than the limit of one of the plans. The package comment has
// the proof.
func (t *Timeline) At(wall, mono headgate.Instant) (w Window, ok bool) {
	base, settled := t.base(wall, mono)
	if base < 0 {
		return Window{Revised: t.next()}, false
	}
	if settled {
		t.changes = slices.Delete(t.changes, 0, base)
		base = 0
	}
	c := &t.changes[base]
	w = Window{Number: c.Window(wall), Plan: c.Plan, Revision: c.Revision, Revised: t.next()}
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

// lesser returns the part that plan p allows in window w of plan of, or 0 if the windows have
// different lengths, because their parts are not comparable.
func lesser(p, other Plan, w int64) int64 {
	if p.Per != other.Per {
		return 0
	}
	return p.Part(w)
}

// base returns the index of the newest change that has begun and is settled. If no such change
// exists, base returns the index of the oldest change that has begun, or -1.
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

// settled reports whether the change was settled when the window of wall began.
func (c *change) settled(wall, mono headgate.Instant) bool {
	elapsed := max(wall-c.Start(c.Window(wall)), 0)
	return c.Settled == 0 || plus(int64(c.Settled), int64(elapsed)) <= int64(mono)
}

// next returns the time at which the next change begins, or the largest Instant.
func (t *Timeline) next() headgate.Instant {
	next := headgate.Instant(math.MaxInt64)
	for i := range t.changes {
		if c := &t.changes[i]; !c.begun {
			next = min(next, c.From)
		}
	}
	return next
}
