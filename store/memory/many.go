package memory

import (
	"cmp"
	"runtime"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/compensate"
)

// batch is the number of keys that TakeMany works on at once. The cache misses of a batch
// overlap, and its spots fit on the stack.
const batch = 32

// TakeMany takes cost under each key, except for a policy with a calendar period, which needs
// Edges. Each key is a group of its own. TakeMany allocates nothing. It fetches the cache lines of 32 keys before it takes the first lock.
//
// A token bucket with a whole interval, in nanoseconds, is decided at the time of its
// batch: the clock is read once for 32 keys, and their Decisions have the same At.
// Another caller may have moved such a bucket on since. docs/algorithms.md shows why this
// is harmless for a state that only moves forward. Every other state is decided at a time
// that is read under the lock.
func (s *Store) TakeMany(keys []string, id headgate.PolicyID, cost int64, decisions []headgate.Decision) error {
	policy, all := s.policy(id), decisions[:len(keys)]
	if !fits(policy, cost, headgate.Take) {
		compensate.Undecide(all)
		return s.fault(policy, id, cost, headgate.Take)
	}
	var spots [batch]spot
	for len(keys) > 0 {
		n := min(len(keys), batch)
		for i, key := range keys[:n] {
			spots[i] = s.table.spotOf(s.hash(key), 0)
			s.table.touch(spots[i])
		}
		now := s.clock.Now()
		for i := range n {
			op := headgate.Op{Policy: id, Cost: cost}
			if err := s.takeAt(policy, &op, spots[i], &now, &decisions[i]); err != nil {
				runtime.KeepAlive(s)
				compensate.Undecide(all)
				return err
			}
		}
		keys, decisions = keys[n:], decisions[n:]
	}
	runtime.KeepAlive(s)
	return nil
}

// takeOps decides up to one batch of Ops, each a group of its own. Cache lines and the clock
// are read as in TakeMany.
func (s *Store) takeOps(ops []headgate.Op, decisions []headgate.Decision) error {
	var spots [batch]spot
	var policies [batch]*policy
	for i := range ops {
		op := &ops[i]
		policy := s.policy(op.Policy)
		if !fits(policy, op.Cost, op.Kind) {
			return s.fault(policy, op.Policy, op.Cost, op.Kind)
		}
		policies[i], spots[i] = policy, s.table.spotOf(s.hash(op.Key), op.Window)
		s.table.touch(spots[i])
	}
	now, outside := s.clock.Now(), error(nil)
	for i := range ops {
		if err := s.takeAt(policies[i], &ops[i], spots[i], &now, &decisions[i]); err != nil {
			if !compensate.IsOutside(err) {
				return err
			}
			outside, decisions[i] = cmp.Or(outside, err), headgate.Undecided()
		}
	}
	runtime.KeepAlive(s)
	return outside
}

// takeAt decides an Op at its spot, at the time of its batch or at a time that is read under
// the lock. The latter becomes the time of the batch: an Op never looks at a bucket from before an
// earlier Op of its batch, which would find it emptier than it is. takeAt returns an error, and counts
// nothing, when the policy was released or the time is outside the edges of the Op.
func (s *Store) takeAt(policy *policy, op *headgate.Op, at spot, batched *headgate.Instant, d *headgate.Decision) error {
	plan, sh := &policy.Plan, &s.table.shards[at.shard]
	sh.lock()
	if !policy.Names(op.Policy) {
		sh.unlock()
		return headgate.ErrUnknownPolicy
	}
	p := s.table.home(at)
	if !p.counts(at.tag, op.Policy) {
		p = s.find(at, op.Policy, plan)
	}
	known := p != nil && p.names(op.Policy)
	if known && op.Kind == headgate.Take && plan.Whole() && p.cell.Units == 0 && step(policy, p, sh, *batched, op.Cost, d) {
		return nil
	}
	now := s.clock.Now()
	*batched = now
	if err := plan.CheckEdges(op.Edges, now); err != nil {
		sh.unlock()
		return err
	}
	if known && takes(op.Kind) && plan.InCell() && !plan.Calendar() {
		draw(policy, p, sh, now, op, d)
		return nil
	}
	s.decide(&turn{
		plan: plan, id: op.Policy, at: at, place: p, now: now, cost: op.Cost, mode: op.Kind, draw: limit.Draw{Edges: op.Edges},
	}, d)
	sh.unlock()
	return nil
}
