package redis

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/script"
)

// Apply implements headgate.Store. On one server, all groups go in one script call, together with
// groups of other callers that wait at the same moment. On a cluster, a group with keys in
// several slots is decided in several calls: see package compensate.
//
// Apply returns at the deadline of ctx, or after Config.Timeout if ctx has no deadline. Units of a
// call that was sent may have been counted, and count as used. Apply also returns when ctx is
// cancelled, with one exception: the caller of a single decision sends the call itself if its
// deadline is within a second. Such a caller waits until the deadline.
func (s *Store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	return s.decideOr(ctx, ops, nil, decisions)
}

// Grant implements prefetch.Source. Each group takes the most units that pass all its Ops, from
// least up to their Cost. Receipt.Cost is the number of units. If least does not pass, the group is
// decided as a Take of least. leaky_bucket and bans grant nothing.
func (s *Store) Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	return s.decideOr(ctx, ops, least, decisions)
}

// decideOr calls apply. After an error, it sets all decisions to Deny, so that no request passes. After an EdgeError, apply
// has done so for the groups that are not decided.
func (s *Store) decideOr(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	err := s.apply(ctx, ops, least, decisions)
	if err != nil && !compensate.IsOutside(err) {
		compensate.Undecide(decisions[:len(ops)])
	}
	return err
}

func (s *Store) apply(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	if len(ops) == 0 {
		return nil
	}
	if !s.made() {
		return headgate.ErrNotMade
	}
	if err := ctx.Err(); err != nil {
		return couldNot("decide", err)
	}
	if err := checkGroups(ops); err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if s.config.Kind == Cluster || len(ops) > maxBatch {
		return s.applyApart(ctx, ops, least, decisions)
	}
	a := s.queues.pool.get()
	if err := s.addGroups(a, ops, least); err != nil {
		s.queues.pool.put(a)
		return err
	}
	return s.decideOn(ctx, s.queues.only, a, decisions)
}

// addGroups adds whole groups to a query.
func (s *Store) addGroups(a *query, ops []headgate.Op, least []int64) error {
	for i := range ops {
		if err := s.add(a, &ops[i]); err != nil {
			return err
		}
	}
	a.least = append(a.least, least...)
	return nil
}

// add checks an Op and adds it to a query.
func (s *Store) add(a *query, op *headgate.Op) error {
	policy := s.policies.GetToUse(op.Policy)
	switch {
	case policy == nil:
		return headgate.ErrUnknownPolicy
	case op.Cost < 0 || op.Cost > headgate.MaxUnits:
		return headgate.ErrBadCost
	}
	if err := limit.CheckKind(policy.Plan.Policy().Algorithm, op.Kind); err != nil {
		return err
	}
	if err := policy.Plan.CheckEdges(op.Edges); err != nil {
		return err
	}
	return a.add(op, &policy.Plan, script.PlaceOf(op.Key, op.Window))
}

// checkGroups gives the error of the first group with Ops that cannot be one group.
func checkGroups(ops []headgate.Op) error {
	for from := 0; from < len(ops); {
		to := endOfGroup(ops, from)
		if err := limit.CheckGroup(ops[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// decideOn sends a query to the queue of a node and waits for the answer.
func (s *Store) decideOn(ctx context.Context, l *nodeQueue, a *query, decisions []headgate.Decision) error {
	err := l.admit(a)
	if err == nil {
		err = l.submit(ctx, a, inline)
	}
	if err != nil {
		s.queues.pool.put(a)
		return err
	}
	mine, err := a.wait(ctx)
	if !mine {
		return err
	}
	if err == nil || compensate.IsOutside(err) {
		copy(decisions, a.decisions)
	}
	s.queues.pool.put(a)
	return err
}
