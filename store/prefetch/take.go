package prefetch

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// outcome is what the short way has made of a request.
type outcome uint8

const (
	unknown  outcome = iota // Nothing is decided.
	noted                   // Nothing is decided; demand is noted.
	answered                // It is decided.
	thirsty                 // It is decided, and the next grant is to be asked for.
	cold                    // Nothing is decided, and nothing is worth taking ahead.
)

// Take decides one Op, whatever its Mode, that is a group of its own. It is Apply
// without slices. From a stash, or by a refusal that is remembered, it decides
// without waiting for anything and allocates nothing.
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

// check finds the policy of an op and the op's faults.
func (s *Store) check(op *headgate.Op) (*policy, error) {
	if !s.made() {
		return nil, headgate.ErrNotMade
	}
	of := s.policies.Get(op.Policy)
	switch {
	case of == nil:
		return nil, headgate.ErrUnknownPolicy
	case op.Cost < 0 || op.Cost > headgate.MaxUnits:
		return nil, headgate.ErrBadCost
	}
	return &of.Plan, nil
}

// stashable says that the cost may be borne by a stash of the policy.
func (p *policy) stashable(cost int64) bool {
	return p.stashes && cost > 0 && cost <= p.sane
}

// repeats says that a refusal of a lesser cost holds for this one: it can pass at all,
// or is refused for other reasons than its cost.
func (p *policy) repeats(cost int64) bool { return cost <= p.most || p.bans }

// word is an op's part of its shape.
func word(op *headgate.Op) uint64 { return uint64(op.Policy)<<8 | uint64(op.Window) }

// quick decides an op from its key's place. Locks are held for this alone.
func (s *Store) quick(p *policy, op *headgate.Op, d *headgate.Decision) (outcome, glance) {
	tag, sh := s.hash(op.Key), shape{word(op)}
	t := s.table.setOf(tag)
	t.lock()
	// The time is read under the lock: what is void by then is not spent.
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

// serveOne spends from a stash of pl; it gives up the lock before it puts the answer into words.
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

// takeSlow is Apply of one op. It works on copies, so that those of Take need not
// outlive their caller's stack.
func (s *Store) takeSlow(ctx context.Context, op headgate.Op, d *headgate.Decision, noted bool) error {
	ops, decisions := []headgate.Op{op}, make([]headgate.Decision, 1)
	err := s.apply(ctx, ops, decisions, noted)
	*d = decisions[0]
	return err
}
