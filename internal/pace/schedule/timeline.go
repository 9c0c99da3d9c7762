package schedule

import (
	"math"
	"slices"

	"github.com/headgate/headgate"
)

// Change is a plan and the time from which it is valid.
type Change struct {
	Plan

	// From is the wall time at which the plan begins, the edge of one of its windows. A time
	// within a window means the window's end, except for the first change of a [Timeline].
	From headgate.Instant
	// Settled is a time on the caller's monotonic clock. Until then, another instance might
	// not know the change. Therefore this instance's parts do not exceed the parts of the
	// plan before, and are 0 if there is no plan before. The first window that begins at
	// Settled or later ends this restriction. The zero time means already settled.
	Settled  headgate.Instant
	Revision int64
}

// Timeline has the plans of one instance. The zero Timeline is ready to use and admits
// nothing. A Timeline is not safe for concurrent use.
type Timeline struct {
	// changes are the current change and the newer ones, in the order in which they were
	// added. A newer change may begin earlier than an older one.
	changes []change
}

type change struct {
	Change

	begun bool // stays true when the clock steps back
}

// maxChanges bounds the changes that have not begun or are not settled.
const maxChanges = 64

// Add adds a change that is newer than all known changes. All instances must add changes in
// the same order. From its From on, the change replaces older ones, also older ones that
// would begin later. If the newest change has the same plan and does not begin later than c,
// Add only updates that change's Revision and Settled.
//
// When there are more than maxChanges changes, Add merges the two newest of the older ones
// into one without units. The instance may then have less than its part until a newer change
// is settled, but never more.
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
		added.begun = added.begun || t.changes[n-1].begun // The new change replaces this one.
	}
	if t.changes = slices.Delete(t.changes, n, len(t.changes)); n == maxChanges {
		t.merge()
	}
	t.changes = append(t.changes, added)
}

// merge replaces the two newest changes by one without units.
func (t *Timeline) merge() {
	n := len(t.changes)
	older, newer := &t.changes[n-2], t.changes[n-1]
	older.Plan, older.Settled, older.Revision = Plan{Per: newer.Per}, newer.Settled, newer.Revision
	older.From, older.begun = min(older.From, newer.From), older.begun || newer.begun
	t.changes = slices.Delete(t.changes, n-1, n)
}

// Last returns the newest known change.
func (t *Timeline) Last() (Change, bool) {
	if len(t.changes) == 0 {
		return Change{}, false
	}
	return t.changes[len(t.changes)-1].Change, true
}

// After returns the start of the window in which this instance gets unit number need, counted
// from the window that begins at from. before is the number of units in earlier windows, and
// p is the window's plan. After assumes that each known plan is settled when the plan begins.
// Therefore the real time is never earlier.
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

// replaced returns the time from which a newer change replaces change i.
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
