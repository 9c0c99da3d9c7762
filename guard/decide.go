package guard

import (
	"context"

	"github.com/headgate/headgate"
)

// apply lets the store decide, or the fallbacks if it cannot.
func (g *Guard) apply(ctx context.Context, s *set, a *Answer) {
	if len(a.ops) > 0 {
		if err := g.count(ctx, s, a); err != nil {
			a.fallBack(ctx, s, err)
			return
		}
	}
	a.hear()
	a.settleFull(ctx, s, g.store)
}

// hear gives each result what the store has decided of its Op.
func (a *Answer) hear() {
	for i := range a.Results {
		r := &a.Results[i]
		switch r.op {
		case opDecided, opReserved:
		case opNone:
			r.Decision = impossible(r)
		default:
			r.Decision = a.decisions[r.op]
		}
		a.usual = a.usual && r.Decision.Reason == headgate.WithinLimit
	}
}

// count asks the store, within its budget.
func (g *Guard) count(ctx context.Context, s *set, a *Answer) error {
	if cap(a.decisions) < len(a.ops) {
		a.decisions = make([]headgate.Decision, len(a.ops))
	}
	a.decisions = a.decisions[:len(a.ops)]
	if s.config.StoreTimeout <= 0 {
		return g.store.Apply(ctx, a.ops, a.decisions)
	}
	bounded := newBudget(ctx, s.config.StoreTimeout)
	defer bounded.end()
	a.deadline = bounded.deadline
	return g.store.Apply(bounded, a.ops, a.decisions)
}

// impossible is the decision on a cost that cannot be counted.
func impossible(r *Result) headgate.Decision {
	return headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never, Limit: r.Limit.Count}
}
