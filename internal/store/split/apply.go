package split

import (
	"cmp"
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/compensate"
)

// Apply implements headgate.Store. Apply makes at most one call of each store, and two for groups of
// TakeIfAll with Ops in both. Apply returns when both stores have answered.
func (s *Store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	return s.decideOr(ctx, ops, nil, decisions)
}

// Grant implements prefetch.Source. If a group has Ops in both stores, prefetch.ByTake decides the
// whole call, which may grant less than possible.
func (s *Store) Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	if s.made() && s.anyMixed(ops) {
		return s.byTake.Grant(ctx, ops, least, decisions)
	}
	return s.decideOr(ctx, ops, least, decisions)
}

// decideOr calls decide. After an error, it sets all decisions to Deny, so that no request passes. After an EdgeError, decide has done
// so for the groups that are not decided.
func (s *Store) decideOr(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	if len(ops) == 0 {
		return nil
	}
	err := headgate.ErrNotMade
	if s.made() {
		err = s.decide(ctx, ops, least, decisions[:len(ops)])
	}
	if err != nil && !compensate.IsOutside(err) {
		compensate.Undecide(decisions[:len(ops)])
	}
	return err
}

func (s *Store) decide(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	c := s.newCall()
	defer s.end(c)
	if err := c.divide(s, ops, least, true); err != nil {
		return err
	}
	outside := s.send(ctx, c, decisions)
	if outside != nil && !compensate.IsOutside(outside) {
		return outside
	}
	return cmp.Or(s.countLooks(ctx, c, decisions), outside)
}

// anyMixed reports whether a group has Ops in both stores.
func (s *Store) anyMixed(ops []headgate.Op) bool {
	for i := 1; i < len(ops); i++ {
		if ops[i].Group != ops[i-1].Group {
			continue
		}
		a, b := s.policies.Get(ops[i-1].Policy), s.policies.Get(ops[i].Policy)
		if a != nil && b != nil && a.Plan.at != b.Plan.at {
			return true
		}
	}
	return false
}

// find gives the policy of an Op, and the error of an Op that cannot be decided.
func (s *Store) find(op *headgate.Op) (*policy, error) {
	policy := s.policies.GetToUse(op.Policy)
	switch {
	case policy == nil:
		return nil, headgate.ErrUnknownPolicy
	case op.Cost < 0 || op.Cost > headgate.MaxUnits:
		return nil, headgate.ErrBadCost
	}
	return &policy.Plan, limit.CheckKind(policy.Plan.is.Algorithm, op.Kind)
}
