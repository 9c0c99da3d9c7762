package schedule

import (
	"math"
	"slices"

	"github.com/headgate/headgate"
)

// Change is a plan and the time from which it holds.
type Change struct {
	Plan

	// From is the wall time of the edge of a window of the plan, from which it holds. One
	// within a window means its end, but for the first change of a [Timeline].
	From headgate.Instant
	// Settled is the time, by the caller's monotonic clock, until which the plan's parts
	// do not exceed those of the plan before, or are nothing when there is none: another
	// instance may not know of it yet. It counts in the first window that begins at or
	// after it. The zero time is long ago.
	Settled  headgate.Instant
	Revision int64
}

// Timeline is the plans of one instance. The zero Timeline is ready to use and admits
// nothing. It is for one goroutine at a time.
type Timeline struct {
	// changes are that which holds and those after it, in the order in which they were
	// added. Each is newer than those before it, also where it begins sooner.
	changes []change
}

type change struct {
	Change

	begun bool // for good: a clock that steps back does not end it
}

// maxChanges bounds the changes that wait to begin or to be settled.
const maxChanges = 64

// Add adds a change that is newer than all that are known; all instances must learn of
// changes in one order. It takes the place of older ones from its From on, also of
// those that would have begun later. The plan that was added last does not count again.
//
// When too many wait, the two before the newest become one that gives nothing: then an
// instance has less than its part until a newer one is settled, and never more.
func (t *Timeline) Add(c Change) {
	n := len(t.changes)
	if n == 0 {
		t.changes = append(t.changes, change{Change: c})
		return
	}
	if w := c.Window(c.From); c.Per > 0 && c.Start(w) < c.From {
		c.From = c.Start(w + 1)
	}
	last := &t.changes[n-1]
	if last.Equal(c.Plan) && (last.begun || last.From <= c.From) {
		if last.Revision = c.Revision; last.Settled != 0 {
			last.Settled = min(last.Settled, c.Settled)
		}
		return
	}
	added := change{Change: c}
	for ; c.Settled == 0 && n > 0 && t.changes[n-1].From >= c.From; n-- {
		added.begun = added.begun || t.changes[n-1].begun // It holds wherever this would.
	}
	if t.changes = slices.Delete(t.changes, n, len(t.changes)); n == maxChanges {
		t.merge()
	}
	t.changes = append(t.changes, added)
}

// merge makes one change that gives nothing of the two newest.
func (t *Timeline) merge() {
	n := len(t.changes)
	older, newer := &t.changes[n-2], t.changes[n-1]
	older.Plan, older.Settled, older.Revision = Plan{Per: newer.Per}, newer.Settled, newer.Revision
	older.From, older.begun = min(older.From, newer.From), older.begun || newer.begun
	t.changes = slices.Delete(t.changes, n-1, n)
}

// Last gives the newest change that is known.
func (t *Timeline) Last() (Change, bool) {
	if len(t.changes) == 0 {
		return Change{}, false
	}
	return t.changes[len(t.changes)-1].Change, true
}

// After gives the wall time of the start of the first window, from the one that begins
// at from on, by whose end need units have come, the number of them in windows before
// it, and its plan. It reckons by the plans that are known and as if each were settled
// when it begins, so that no unit can come sooner.
func (t *Timeline) After(from headgate.Instant, need int64) (start headgate.Instant, before int64, p Plan, ok bool) {
	for i := range t.changes {
		c, until := &t.changes[i], t.replaced(i)
		if until <= from {
			continue
		}
		if !c.begun {
			from = max(from, c.From)
		}
		w, units, comes := c.After(c.Window(from), need-before)
		if comes && c.Start(w) < until {
			return c.Start(w), before + units, c.Plan, true
		}
		if until == math.MaxInt64 {
			break
		}
		before += c.Sum(c.Window(from), c.Window(until-1)+1)
		from = until
	}
	return 0, 0, Plan{}, false
}

// replaced gives from when change i no longer counts, because a newer one has begun.
func (t *Timeline) replaced(i int) headgate.Instant {
	until := headgate.Instant(math.MaxInt64)
	for k := i + 1; k < len(t.changes); k++ {
		c := &t.changes[k]
		if c.begun {
			return math.MinInt64
		}
		until = min(until, c.From)
	}
	return until
}
