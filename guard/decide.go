package guard

import (
	"context"

	"github.com/headgate/headgate"
)

// apply has the store decide, or the fallbacks if the store cannot.
func (g *Guard) apply(ctx context.Context, s *set, a *Answer) {
	if len(a.own.ops) > 0 {
		if err := g.count(ctx, s, a); err != nil {
			a.fallBack(ctx, s, err)
			return
		}
	}
	a.observe()
	a.decideOutside(ctx, s)
	a.settleFull()
}

// observe copies the store's decision on each Op to its result.
func (a *Answer) observe() {
	for i := range a.Results {
		r := &a.Results[i]
		switch r.op {
		case opDecided, opReserved, opOutside:
		case opNone:
			r.Decision = impossible(r)
		default:
			r.Decision = a.request.decisions[r.op]
		}
		a.usual = a.usual && r.Decision.Reason == headgate.WithinLimit
	}
}

// count calls the store, within its budget.
func (g *Guard) count(ctx context.Context, s *set, a *Answer) error {
	if s.config.StoreTimeout <= 0 {
		return g.decided(ctx, &a.own, a, nil)
	}
	bounded := newBudget(ctx, s.config.StoreTimeout-a.waited)
	defer bounded.end()
	a.deadline = bounded.deadline
	return g.decided(bounded, &a.own, a, nil)
}

// question is one call of a store: its Ops, and the Decisions on them.
type question struct {
	ops       []headgate.Op
	decisions []headgate.Decision
}

// put has a store decide all Ops.
func (q *question) put(ctx context.Context, store headgate.Store) error {
	n := len(q.ops)
	if cap(q.decisions) < n {
		q.decisions = make([]headgate.Decision, n, cap(q.ops))
	}
	q.decisions = q.decisions[:n]
	return store.Apply(ctx, q.ops, q.decisions)
}

// impossible is the decision on an invalid cost.
func impossible(r *Result) headgate.Decision {
	return headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never, Limit: r.Limit.Count}
}
