package prefetch

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// outcome is the result of the fast path for a request.
type outcome uint8

const (
	unknown  outcome = iota // Not decided.
	noted                   // Not decided; demand is counted.
	answered                // Decided.
	thirsty                 // Decided, and the next grant is due.
	cold                    // Not decided, and the key gets no stash.
)

// Take decides one Op of any kind that is a group of its own. Take is Apply without slices.
// With a stash or a known refusal, Take decides without waiting and allocates nothing.
func (s *Store) Take(ctx context.Context, op *headgate.Op, d *headgate.Decision) error {
	p, err := s.check(op)
	if err != nil {
		*d = headgate.Undecided()
		return err
	}
	state, seen := unknown, glance{}
	if op.Kind == headgate.Take && !p.counts && p.repeats(op.Cost) && (p.stashes || s.denyFor > 0) {
		state, seen = s.quick(p, op, d)
	}
	switch state {
	case answered:
		return nil
	case thirsty:
		s.refillOne(*op, p)
		return nil
	case cold:
		err = s.takeCold(ctx, p, op, d, seen)
	default:
		err = s.takeSlow(ctx, *op, d, state == noted)
	}
	if err != nil {
		*d = headgate.Undecided()
	}
	return err
}

// check finds the policy of an op, and gives the error of an invalid op.
func (s *Store) check(op *headgate.Op) (*policy, error) {
	if !s.made() {
		return nil, headgate.ErrNotMade
	}
	policy := s.policies.Get(op.Policy)
	switch {
	case policy == nil:
		return nil, headgate.ErrUnknownPolicy
	case op.Cost < 0 || op.Cost > headgate.MaxUnits:
		return nil, headgate.ErrBadCost
	}
	if err := limit.CheckKind(policy.Plan.algorithm, op.Kind); err != nil {
		return nil, err
	}
	return &policy.Plan, nil
}

// stashable reports whether a stash of the policy may serve the cost.
func (p *policy) stashable(cost int64) bool {
	return p.stashes && cost > 0 && cost <= p.sane
}

// repeats reports whether a known refusal of a lower cost applies to this cost: the cost can
// pass at all, or a ban refuses it.
func (p *policy) repeats(cost int64) bool { return cost <= p.most || p.bans }

// word is the entry of an op in its shape.
func word(op *headgate.Op) uint64 { return uint64(op.Policy)<<8 | uint64(op.Window) }

// quick decides an op from the place of its key. Only quick holds the lock.
func (s *Store) quick(p *policy, op *headgate.Op, d *headgate.Decision) (outcome, glance) {
	tag, sh := s.hash(op.Key), shape{word(op)}
	t := s.table.setOf(tag)
	t.lock()
	// The time is read under the lock, so that no expired unit is spent.
	now := s.now()
	pl := t.find(tag, &sh)
	stashable := p.stashable(op.Cost)
	seen := glance{now, tag, t.lifted}
	if pl == nil {
		if !stashable {
			t.unlock()
			return unknown, seen
		}
		if t.isCold(p, tag, now) {
			t.unlock()
			return cold, seen
		}
		pl = s.placeFor(t, tag, &sh, p.hold, now)
		if p.batch == 0 {
			pl.asked = glanced * op.Cost
		}
	}
	result := unknown
	if stashable {
		result = noted
		pl.tick(now)
		if st := pl.ready(now, op.Cost); st != nil {
			st.asked += op.Cost
			return s.serveOne(p, op, d, t, pl, st, tag, now), seen
		}
		pl.note(now, op.Cost)
		if pl.isCold(p, op.Cost) {
			result = cold
		}
	}
	if w := &pl.said.ops[0]; s.denies(&pl.said, w, op.Cost, now) {
		pl.refused++
		pl.said.tell(w, p, now, d)
		t.unlock()
		return answered, seen
	}
	t.unlock()
	return result, seen
}

// serveOne spends from a stash of pl. It releases the lock before it fills the Decision.
func (s *Store) serveOne(
	p *policy, op *headgate.Op, d *headgate.Decision, t *set, pl *place, st *stash, tag uint64, now time.Duration,
) outcome {
	st.left -= op.Cost
	w := &pl.said.ops[0]
	left, reset, nonce, at := w.remaining+pl.left(now), w.resetAt, st.serve(1), st.estimate(now)
	result := answered
	if pl.wants(now) {
		pl.flying = true
		result = thirsty
	}
	t.unlock()
	d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
	d.Limit, d.Remaining, d.ResetAfter = p.room, min(left, p.room), max(0, reset-now)
	d.At = at
	s.receipt(&d.Receipt, op, nonce, tag, 0, 1, at)
	return result
}

// takeSlow is Apply of one op. It copies the arguments, so that those of Take may stay on
// their caller's stack.
func (s *Store) takeSlow(ctx context.Context, op headgate.Op, d *headgate.Decision, noted bool) error {
	ops, decisions := []headgate.Op{op}, make([]headgate.Decision, 1)
	err := s.apply(ctx, ops, decisions, noted)
	*d = decisions[0]
	return err
}
