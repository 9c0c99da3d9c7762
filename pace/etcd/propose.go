package etcd

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// next gives the plan for the current limit and members, without its time. It is nil without a limit
// or without members. In grace, it keeps all members of the last plan.
func (v *view) next(grace bool) *plan {
	l, ok := v.allowed()
	if !ok {
		return nil
	}
	p := &plan{limit: l.Count, per: l.Per, limitRevision: v.limit.mod}
	living := v.living()
	if v.good != nil {
		p.members = v.good.members
	}
	if grace {
		living = slices.Concat(p.members, living)
	}
	p.members = keepOrder(p.members, living)
	if len(p.members) == 0 || len(p.members) > maxMembers {
		return nil
	}
	return p
}

// sameAs reports that a plan already gives the same parts.
func (p *plan) sameAs(now *plan) bool {
	return now != nil && now.units == nil && now.limit == p.limit && now.per == p.per && slices.Equal(now.members, p.members)
}

// from gives the time from which a plan sent at sent is valid: an edge of windows of both plans, at
// least bound later, and not before the last valid plan. If that plan was deleted because it would
// begin in a hundred years, its time does not count.
func (v *view) from(p *plan, sent headgate.Instant, bound time.Duration) headgate.Instant {
	from, length := sent.Add(bound), p.per
	if v.good != nil {
		if both, err := commonLength(v.good.per, p.per); err == nil { // next has checked this.
			length = both
		}
		if v.plan.mark.mod != 0 {
			from = max(from, v.good.from)
		}
	}
	return edge(from, length)
}

// Waits before a proposal.
const (
	settling  = 50 * time.Millisecond // simultaneous changes then make one plan
	turnEvery = 40 * time.Millisecond // for each instance with an earlier turn
	lastTurn  = 64
	// maxPending bounds the plans that have not begun.
	maxPending = 5
)

// patience is the wait of an instance before it proposes a required plan. It depends on the turn,
// so that not all instances propose at once.
func patience(turn int) time.Duration {
	turn = min(turn, lastTurn)
	return jitter(settling + time.Duration(turn)*turnEvery)
}

// jitter gives a random time from d to 2d, or up to a third more than d for long times.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(min(max(d, 1), max(settling, d/3)))
}

// proposing is the timing of an instance's proposals. It belongs to one goroutine.
type proposing struct {
	since    time.Time // when another plan became required; zero without one
	patience time.Duration
	last     time.Time          // when the last plan arrived
	pending  []headgate.Instant // the beginnings of the last few plans
}

// saw records a plan.
func (p *proposing) saw(from headgate.Instant, at time.Time) {
	p.since, p.last = time.Time{}, at
	p.pending = append(p.pending, from)
	if over := len(p.pending) - maxPending; over > 0 {
		p.pending = slices.Delete(p.pending, 0, over)
	}
}

// deleted records that the plan was deleted.
func (p *proposing) deleted() { p.pending = nil }

// wanted records that another plan is required, and this instance's turn.
func (p *proposing) wanted(turn int, penalty time.Duration, at time.Time) {
	if p.since.IsZero() {
		p.since, p.patience = at, patience(turn)+penalty
	}
}

// wait gives the wait before the proposal of a plan that is valid from from. The others must have
// had their turn, and the last plan must be a quarter of the bound old. At most maxPending plans
// may be pending. With long windows, the proposal waits until from is near, so that further changes
// are in the same plan.
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
