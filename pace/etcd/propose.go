package etcd

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// next gives the plan that limit and members call for, without units and from when it
// holds. It is nil when there is nothing to divide, or nobody to divide it among. In
// grace, nobody is left out who is in the last.
func (v *view) next(grace bool) (p *plan, uneven bool) {
	l, ok := v.allowed()
	if !ok {
		return nil, false
	}
	p = &plan{limit: l.Count, per: l.Per, limitRevision: v.limit.mod}
	living := v.living()
	if v.good != nil {
		p.members = v.good.members
	}
	if grace {
		living = slices.Concat(p.members, living)
	}
	p.members = keepOrder(p.members, living)
	if len(p.members) == 0 || len(p.members) > maxMembers {
		return nil, false
	}
	return p, l.Balance == Demand
}

// sameAs says that a plan is already what another calls for, but for its units.
func (p *plan) sameAs(now *plan, uneven bool) bool {
	return now != nil && now.limit == p.limit && now.per == p.per && (now.units != nil) == uneven &&
		slices.Equal(now.members, p.members)
}

// from gives when a plan that is sent at a time holds: at an edge at least bound later,
// and not before the last good, unless somebody has deleted that because it would begin
// in a hundred years. Windows of both plans begin then.
func (v *view) from(p *plan, sent headgate.Instant, bound time.Duration) headgate.Instant {
	from, length := sent.Add(bound), p.per
	if v.good != nil {
		if both, err := commonLength(v.good.per, p.per); err == nil { // It is: next has looked.
			length = both
		}
		if v.plan.mark.mod != 0 {
			from = max(from, v.good.from)
		}
	}
	return edge(from, length)
}

// What keeps an instance from proposing a plan at once.
const (
	settling  = 50 * time.Millisecond // so that two who come or go together make one plan
	turnEvery = 40 * time.Millisecond // for each instance that has its turn before
	lastTurn  = 64
	// maxPending bounds the plans that have not begun.
	maxPending = 5
)

// patience is how long an instance waits until it proposes a plan that it has seen to
// be called for: by its turn, so that not all propose the same at once.
func patience(turn int) time.Duration {
	turn = min(turn, lastTurn)
	return jitter(settling + time.Duration(turn)*turnEvery)
}

// jitter gives a time from d to 2d, or by a third more for long ones.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(min(max(d, 1), max(settling, d/3)))
}

// proposing is when an instance proposes. It is for one goroutine.
type proposing struct {
	since    time.Time // when it was seen that another plan is called for; zero: none is
	patience time.Duration
	last     time.Time          // when the last plan was seen
	pending  []headgate.Instant // when plans that were seen begin, the last few
}

// saw notes a plan that somebody has proposed.
func (p *proposing) saw(from headgate.Instant, at time.Time) {
	p.since, p.last = time.Time{}, at
	p.pending = append(p.pending, from)
	if over := len(p.pending) - maxPending; over > 0 {
		p.pending = slices.Delete(p.pending, 0, over)
	}
}

// deleted notes that the plan is gone.
func (p *proposing) deleted() { p.pending = nil }

// wanted notes that another plan is called for, and whose turn it is.
func (p *proposing) wanted(turn int, penalty time.Duration, at time.Time) {
	if p.since.IsZero() {
		p.since, p.patience = at, patience(turn)+penalty
	}
}

// wait gives how long to wait until the plan may be proposed that would hold from a
// time: until others have had their turn; a quarter of the bound after the last plan;
// while as many plans as may have not begun; and, for long windows, until that time is
// near, so that what else changes until then is in the same plan.
func (p *proposing) wait(from headgate.Instant, bound time.Duration, now moment) time.Duration {
	wait := p.patience - now.mono.Sub(p.since)
	if !p.last.IsZero() {
		wait = max(wait, bound/4-now.mono.Sub(p.last))
	}
	wait = max(wait, from.Add(-2*bound).Sub(now.wall))
	if len(p.pending) == maxPending {
		wait = max(wait, p.pending[0].Sub(now.wall)+1)
	}
	return wait
}
