package schedule

import (
	"math"

	"github.com/headgate/headgate"
)

// Change is a plan and the time from which it holds.
type Change struct {
	Plan
	// From is the wall time of the edge of a window from which the plan holds.
	From headgate.Instant
	// Settled is the time, by the caller's monotonic clock, until which the plan's parts
	// do not exceed those of the plan before: another instance may not know of it yet.
	Settled  headgate.Instant
	Revision int64
}

// Timeline is the plans of one instance in the order in which they hold. The zero
// Timeline is ready to use and admits nothing. It is for one goroutine at a time.
type Timeline struct {
	changes []Change // That which holds, and those to come.
}

// maxChanges bounds the plans that wait for their time: one that comes when so many do
// takes the place of the last.
const maxChanges = 8

// Add puts a change behind those that are known. One that begins before the last of
// them replaces those that would begin later.
func (t *Timeline) Add(c Change) {
	n := len(t.changes)
	for n > 1 && (t.changes[n-1].From > c.From || n == maxChanges) {
		n--
	}
	t.changes = append(t.changes[:n], c)
}

// Window is one window of an instance.
type Window struct {
	Number   int64
	Start    headgate.Instant // by the wall clock
	Plan     Plan             // the newest plan that holds in it
	Part     int64            // units
	Revision int64
	// Revised is the earliest wall time, after Start, at which a known plan begins.
	Revised headgate.Instant
}

// At gives the window that the wall time is in, as known at the monotonic time, and
// forgets the plans that are over by then. It is false before the first plan begins.
//
// The newest plan of those that have begun and are settled gives the part. Those that
// are newer and have begun can only lessen it. So when all instances know each plan
// before it is settled anywhere, or have stopped, their parts of one window never add
// up to more than the limit of one of the plans: if k is the newest plan that is
// settled for anybody, then everybody knows k, and nobody takes more than k gives.
func (t *Timeline) At(wall, mono headgate.Instant) (Window, bool) {
	base := t.base(wall, mono)
	if base < 0 {
		return Window{Revised: t.next(wall)}, false
	}
	t.changes = append(t.changes[:0], t.changes[base:]...)
	c := &t.changes[0]
	w := Window{Number: c.Window(wall), Plan: c.Plan, Revision: c.Revision, Revised: t.next(wall)}
	w.Start = c.Start(w.Number)
	w.Part = c.Part(w.Number)
	for _, later := range t.changes[1:] {
		if later.From > wall {
			break
		}
		w.Part = min(w.Part, lesser(later.Plan, c.Plan, w.Number))
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

// base gives the index of the newest plan that has begun and is settled, else of the
// first that has begun; -1 when there is none.
func (t *Timeline) base(wall, mono headgate.Instant) int {
	base := -1
	for i := range t.changes {
		c := &t.changes[i]
		if c.From > wall {
			break
		}
		if base < 0 || c.Settled <= mono {
			base = i
		}
	}
	return base
}

func (t *Timeline) next(wall headgate.Instant) headgate.Instant {
	for i := range t.changes {
		if t.changes[i].From > wall {
			return t.changes[i].From
		}
	}
	return math.MaxInt64
}

// After gives the wall time of the start of the first window, from the one that begins
// at from on, by whose end need units have come, the number of them in windows before
// it, and its plan. It reckons by the plans that are known and as if each were settled
// when it begins, so that no unit can come sooner.
func (t *Timeline) After(from headgate.Instant, need int64) (start headgate.Instant, before int64, p Plan, ok bool) {
	had := int64(0)
	for i := range t.changes {
		c := &t.changes[i]
		until := headgate.Instant(math.MaxInt64)
		if i+1 < len(t.changes) {
			until = t.changes[i+1].From
		}
		if until <= from {
			continue
		}
		from = max(from, c.From)
		w, units, comes := c.After(c.Window(from), need-had)
		if comes && c.Start(w) < until {
			return c.Start(w), had + units, c.Plan, true
		}
		if until == math.MaxInt64 {
			break
		}
		had += c.Sum(c.Window(from), c.Window(until))
		from = until
	}
	return 0, 0, Plan{}, false
}

// Last gives the newest plan that is known.
func (t *Timeline) Last() (Change, bool) {
	if len(t.changes) == 0 {
		return Change{}, false
	}
	return t.changes[len(t.changes)-1], true
}
