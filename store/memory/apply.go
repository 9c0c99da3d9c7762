package memory

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/compensate"
)

// errSameState says that a group names one state twice.
var errSameState = errors.New("memory: two Ops of one group have the same Key and Window: give them one Op, or two Windows")

// Apply implements headgate.Store. Apply blocks only on the locks of shards.
func (s *Store) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if len(ops) == 1 { // Most guards send one Op.
		return s.Take(&ops[0], &decisions[0])
	}
	err := s.apply(ops, decisions)
	if err != nil && !compensate.IsOutside(err) {
		compensate.Undecide(decisions[:len(ops)])
	}
	return err
}

func (s *Store) apply(ops []headgate.Op, decisions []headgate.Decision) error {
	if err := s.checkKinds(ops); err != nil {
		return err
	}
	var outside error
	for len(ops) > 0 {
		var err error
		n := single(ops)
		if n > 0 {
			err = s.takeOps(ops[:n], decisions[:n])
		} else {
			n = 2
			for n < len(ops) && ops[n].Group == ops[0].Group {
				n++
			}
			if err = s.applyGroup(ops[:n], decisions[:n]); err != nil {
				compensate.Undecide(decisions[:n])
			}
		}
		if err != nil && !compensate.IsOutside(err) {
			return err
		}
		outside = cmp.Or(outside, err)
		ops, decisions = ops[n:], decisions[n:]
	}
	return outside
}

// single counts the Ops before the first group of several Ops. The count is at most one batch.
func single(ops []headgate.Op) int {
	n := 0
	for n < min(len(ops), batch) && (n+1 == len(ops) || ops[n+1].Group != ops[n].Group) {
		n++
	}
	return n
}

// fits reports whether an Op is valid for its policy; fault gives the error. fits does not
// check the id: that needs the lock of the shard (Names).
func fits(policy *policy, cost int64, mode headgate.OpKind) bool {
	return policy != nil && uint64(cost) <= headgate.MaxUnits &&
		(mode == headgate.Take || limit.Accepts(policy.Plan.Policy.Algorithm, mode))
}

// fault is the error of an Op that is invalid for its policy.
func (s *Store) fault(policy *policy, id headgate.PolicyID, cost int64, mode headgate.OpKind) error {
	switch {
	case !s.made():
		return headgate.ErrNotMade
	case policy == nil || !policy.Names(id):
		return headgate.ErrUnknownPolicy
	case cost < 0 || cost > headgate.MaxUnits:
		return headgate.ErrBadCost
	default:
		return limit.CheckKind(policy.Plan.Policy.Algorithm, mode)
	}
}

// Take decides one Op of any kind that is a group of its own. Take is Apply without
// slices and context, and allocates nothing.
func (s *Store) Take(op *headgate.Op, d *headgate.Decision) error {
	policy := s.policy(op.Policy)
	if !fits(policy, op.Cost, op.Kind) {
		*d = headgate.Undecided()
		return s.fault(policy, op.Policy, op.Cost, op.Kind)
	}
	plan := &policy.Plan
	at := s.table.spotOf(s.hash(op.Key), op.Window)
	sh := &s.table.shards[at.shard]
	sh.lock()
	if !policy.Names(op.Policy) {
		sh.unlock()
		runtime.KeepAlive(s)
		*d = headgate.Undecided()
		return headgate.ErrUnknownPolicy
	}
	p := s.table.home(at)
	if !p.counts(at.tag, op.Policy) {
		p = s.find(at, op.Policy, plan)
	}
	// The clock is read under the lock, so the time is never before that of the state.
	now := s.clock.Now()
	if err := plan.CheckEdges(op.Edges, now); err != nil {
		sh.unlock()
		runtime.KeepAlive(s)
		*d = headgate.Undecided()
		return err
	}
	if p != nil && p.names(op.Policy) {
		if op.Kind == headgate.Take && plan.Whole() && p.cell.Units == 0 {
			if step(policy, p, sh, now, op.Cost, d) {
				runtime.KeepAlive(s)
				return nil
			}
		} else if takes(op.Kind) && plan.InCell() && !plan.Calendar() {
			draw(policy, p, sh, now, op, d)
			runtime.KeepAlive(s)
			return nil
		}
	}
	s.decide(&turn{
		plan: plan, id: op.Policy, at: at, place: p, now: now, cost: op.Cost, mode: op.Kind, draw: limit.Draw{Edges: op.Edges},
	}, d)
	sh.unlock()
	runtime.KeepAlive(s)
	return nil
}

// takes reports whether an Op of this Kind, alone in its group, counts units.
func takes(mode headgate.OpKind) bool { return mode != headgate.Peek && !limit.Corrects(mode) }

// step is the fast path of a known key with a Whole bucket: its TAT is a whole number of
// nanoseconds. The caller holds the lock of the shard. When step reports true, it has
// released the lock, and the state has only moved forward. When step reports false,
// nothing has changed.
func step(policy *policy, p *place, sh *shard, now headgate.Instant, cost int64, d *headgate.Decision) bool {
	plan := &policy.Plan
	tat := p.cell.Time
	next, passes := plan.Step(tat, now, cost)
	if !passes {
		if !plan.RefuseStep(tat, now, next, cost, d) {
			return false
		}
		sh.unlock()
		return true
	}
	p.cell.Time = next
	sh.nonce++
	// Fields are copied one by one: a copy of the whole cell would stall on the store to Time.
	nonce, tag, epoch, returned := sh.nonce, p.tag, p.cell.Epoch, p.cell.Returned
	sh.unlock()
	plan.ExplainStep(now, next, cost, d)
	r := &d.Receipt
	r.Nonce, r.Place[0], r.Place[1] = nonce, tag, uint64(epoch)
	r.Policy, r.Returned = policy.ID(), returned
	if cost == 0 {
		*r = headgate.Receipt{}
	}
	return true
}

// draw is the fast path of a known key with a cell, and no other places. The caller holds the lock of the
// shard. draw releases the lock before it fills the Decision.
func draw(policy *policy, p *place, sh *shard, now headgate.Instant, op *headgate.Op, d *headgate.Decision) {
	plan := &policy.Plan
	draw := limit.Draw{}
	plan.JudgeCell(&p.cell, now, op.Cost, op.Kind, &draw)
	taken := draw.Verdict != headgate.Deny
	if taken || plan.CountsRefused(draw.Reason != headgate.Never) {
		plan.TakeCell(&p.cell, &draw)
	}
	sh.nonce++
	nonce, tag := sh.nonce, p.tag
	sh.unlock()
	plan.Explain(&draw, d)
	if taken && op.Cost > 0 && plan.Returnable() {
		plan.Receipt(&draw, &d.Receipt)
		d.Receipt.Nonce, d.Receipt.Place[0], d.Receipt.Policy = nonce, tag, policy.ID()
		d.Receipt.Place[1] = uint64(draw.Epoch())
	} else {
		d.Receipt = headgate.Receipt{}
	}
}

// decide decides one Op that is a group of its own, under the lock of its shard.
func (s *Store) decide(t *turn, d *headgate.Decision) {
	switch t.mode {
	case headgate.Refund:
		s.refund(t, d)
		return
	case headgate.Charge:
		s.charge(t, d)
		return
	default:
	}
	if t.place == nil {
		if t.mode == headgate.Peek {
			s.peekVoid(t, d)
			return
		}
		if t.place = s.placeFor(t, nil); t.place == nil {
			s.storeFull(t, d)
			return
		}
	}
	if t.mode == headgate.Peek {
		s.peek(t, d)
		return
	}
	s.begin(t)
	s.judge(t, d)
	s.settle(t, true, d)
	s.end(t, nil)
}

// peek decides for a known key and counts nothing. A cell stays unchanged. A log or a
// sliding window gets a new epoch when the clock has stepped back.
func (s *Store) peek(t *turn, d *headgate.Decision) {
	alone, copied := *t, *t.place
	alone.place, alone.mode = &copied, headgate.Peek
	s.judge(&alone, d)
	if !t.plan.InCell() {
		t.place.cell.Epoch = copied.cell.Epoch
	}
	d.Receipt = headgate.Receipt{}
}

// peekVoid decides a Peek for a key without a place, and gives the key none.
func (s *Store) peekVoid(t *turn, d *headgate.Decision) {
	none := place{cell: limit.Cell{Policy: uint16(t.id)}}
	alone := *t // A copy on the stack may point at a place on the stack.
	alone.place = &none
	s.judge(&alone, d)
	d.Receipt = headgate.Receipt{}
}

// settle counts an Op after the decision, as its Kind requires, and fills its Receipt.
// countable reports that no Op of the group has the reason Never.
func (s *Store) settle(t *turn, countable bool, d *headgate.Decision) {
	passes := d.Verdict != headgate.Deny
	switch {
	case t.mode == headgate.Peek || d.Reason == headgate.StoreFull:
		d.Receipt = headgate.Receipt{}
	case passes && t.cost > 0 && t.plan.Returnable():
		s.take(t, d)
		sh := &s.table.shards[t.at.shard]
		sh.nonce++
		d.Receipt.Nonce, d.Receipt.Place[0], d.Receipt.Policy = sh.nonce, t.at.tag, t.id
		d.Receipt.Place[1] = uint64(t.place.cell.Epoch)
		if !t.plan.InCell() {
			d.Receipt.Returned = t.place.cell.Returned
		}
	default:
		if passes || t.plan.CountsRefused(countable && d.Reason != headgate.Never) {
			s.take(t, d)
		}
		d.Receipt = headgate.Receipt{}
	}
}

// group is the working memory of one group of Ops.
type group struct {
	turns    []turn
	policies []*policy // policies of the turns
	shards   []uint64
}

// groups is a pool of group.
type groups struct{ pool sync.Pool }

func (g *groups) get() *group {
	if w, ok := g.pool.Get().(*group); ok {
		return w
	}
	return &group{}
}

func (g *groups) put(w *group) {
	clear(w.turns)
	clear(w.policies)
	w.turns, w.policies, w.shards = w.turns[:0], w.policies[:0], w.shards[:0]
	g.pool.Put(w)
}

// applyGroup decides several Ops at one time, all or nothing.
func (s *Store) applyGroup(ops []headgate.Op, decisions []headgate.Decision) error {
	w := s.groups.get()
	defer s.groups.put(w)
	for i := range ops {
		op := &ops[i]
		policy := s.policy(op.Policy)
		if !fits(policy, op.Cost, op.Kind) {
			return s.fault(policy, op.Policy, op.Cost, op.Kind)
		}
		at := s.table.spotOf(s.hash(op.Key), op.Window)
		s.table.touch(at)
		for j := range w.turns {
			if w.turns[j].at.tag == at.tag {
				return errSameState
			}
		}
		w.policies = append(w.policies, policy)
		w.turns = append(w.turns, turn{
			plan: &policy.Plan, id: op.Policy, at: at, cost: op.Cost, mode: op.Kind, draw: limit.Draw{Edges: op.Edges},
		})
		w.shards = append(w.shards, at.shard)
	}
	// Every group locks shards in ascending order, so that groups cannot deadlock.
	slices.Sort(w.shards)
	w.shards = slices.Compact(w.shards)
	for _, i := range w.shards {
		s.table.shards[i].lock()
	}
	now := s.clock.Now()
	err := w.check(now)
	if err == nil {
		s.locate(w.turns, now)
		s.judgeGroup(w.turns, decisions)
	}
	for _, i := range w.shards {
		s.table.shards[i].unlock()
	}
	runtime.KeepAlive(s)
	return err
}

// check returns an error if a policy of the group is not in use any more, or if the time is
// outside the edges of an Op. The caller holds the locks of the shards.
func (w *group) check(now headgate.Instant) error {
	for i, policy := range w.policies {
		if !policy.Names(w.turns[i].id) {
			return headgate.ErrUnknownPolicy
		}
		if err := policy.Plan.CheckEdges(w.turns[i].draw.Edges, now); err != nil {
			return err
		}
	}
	return nil
}

// locate finds the places of the group's keys. Existing places come first, so that a new
// key does not evict another key of the group.
func (s *Store) locate(turns []turn, now headgate.Instant) {
	for i := range turns {
		t := &turns[i]
		t.now = now
		if t.place = s.find(t.at, t.id, t.plan); t.place != nil && t.mode != headgate.Peek {
			s.begin(t)
		}
	}
	for i := range turns {
		t := &turns[i]
		if t.place == nil && t.mode != headgate.Peek {
			if t.place = s.placeFor(t, turns); t.place != nil {
				s.begin(t)
			}
		}
	}
}

// judgeGroup decides every Op, then counts all or none.
func (s *Store) judgeGroup(turns []turn, decisions []headgate.Decision) {
	passes, countable := true, true
	for i := range turns {
		t, d := &turns[i], &decisions[i]
		switch {
		case t.mode == headgate.Peek && t.place != nil:
			s.peek(t, d)
		case t.mode == headgate.Peek:
			s.peekVoid(t, d)
		case t.place != nil:
			s.judge(t, d)
		default:
			s.storeFull(t, d)
		}
		passes = passes && d.Verdict != headgate.Deny
		countable = countable && d.Reason != headgate.Never
	}
	for i := range turns {
		t, d := &turns[i], &decisions[i]
		if passes || d.Verdict == headgate.Deny {
			s.settle(t, countable, d)
		} else {
			s.stayBehind(t, turns, countable, d)
		}
	}
	for i := range turns {
		if turns[i].place != nil {
			s.end(&turns[i], turns)
		}
	}
}

// stayBehind completes an Op that passes alone, in a group that is refused. The attempt is
// counted if the policy counts refused attempts, and the Kind is not TakeIfAll. Remaining and
// ResetAfter are those without the Op.
func (s *Store) stayBehind(t *turn, group []turn, countable bool, d *headgate.Decision) {
	if d.Reason == headgate.StoreFull {
		return
	}
	if t.mode != headgate.Peek && t.mode != headgate.TakeIfAll && t.plan.CountsRefused(countable) {
		s.take(t, d)
	}
	if t.draw.EndedChanged() { // The peek reads these counts.
		s.keepEnded(t, group)
	}
	t.cost, t.mode = 0, headgate.Peek
	var without headgate.Decision
	if t.place == nil {
		s.peekVoid(t, &without)
	} else {
		s.peek(t, &without)
	}
	d.Remaining, d.ResetAfter, d.Receipt = without.Remaining, without.ResetAfter, headgate.Receipt{}
}
