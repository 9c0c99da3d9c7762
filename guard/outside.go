package guard

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
)

// opOutside is the value of Result.op of a limit with a calendar period while the store's clock is outside of the
// edges: the rule's fallback decides.
const opOutside = -6

// decided has the store decide a question. If the store's clock is outside of the edges of calendar windows, the store
// decides in a second call without the Ops of these edges: other nodes, and longer windows, are not affected. If another
// clock is outside too, the store decides in a third call without all Ops with edges.
func (g *Guard) decided(ctx context.Context, q *question, one *Answer, all []Answer) error {
	err := q.put(ctx, g.store)
	for _, every := range [...]bool{false, true} {
		edge, outside := errors.AsType[*headgate.EdgeError](err)
		if !outside {
			return err
		}
		moved := q.withoutEdges(edge.At, every)
		if one != nil {
			one.move(moved, edge)
		}
		for i := range all {
			all[i].move(moved, edge)
		}
		if len(q.ops) == 0 {
			return nil
		}
		err = q.put(ctx, g.store)
	}
	return err
}

// withoutEdges removes the Ops whose edges do not contain a time of the store, or every Op with edges. It gives the new
// position of each Op, or opOutside.
func (q *question) withoutEdges(at headgate.Instant, every bool) []int {
	moved, kept := make([]int, len(q.ops)), q.ops[:0]
	for i := range q.ops {
		if edges := q.ops[i].Edges; edges != nil {
			if _, _, contains := edges.Window(at); every || !contains {
				moved[i] = opOutside
				continue
			}
		}
		moved[i] = len(kept)
		kept = append(kept, q.ops[i])
	}
	clear(q.ops[len(kept):])
	q.ops = kept
	return moved
}

// move follows the Ops of the results to their new positions. edge is the error because of which Ops were removed.
func (a *Answer) move(moved []int, edge *headgate.EdgeError) {
	if a.Error != nil {
		return
	}
	for i := range a.Results {
		if r := &a.Results[i]; r.op >= 0 {
			if r.op = moved[r.op]; r.op == opOutside {
				a.out, a.StoreError = true, edge
			}
		}
	}
}

// decideOutside decides the results that the store has left out, by the fallbacks of their rules.
func (a *Answer) decideOutside(ctx context.Context, s *set) {
	if !a.out {
		return
	}
	a.usual = false
	for i := range a.Results {
		r := &a.Results[i]
		if r.op != opOutside {
			continue
		}
		r.Fallback = true
		switch {
		case r.neverFits():
			r.Decision = impossible(r)
		case r.Rule.Fallback == FallbackLocal && s.config.Local != nil && ctx.Err() == nil:
			a.decideInLocal(ctx, s, r)
		default:
			r.Decision = unavailable(r)
		}
	}
}

// decideInLocal has Local decide one result. Its units stay counted in Local, also if another limit refuses the request:
// the receipts of an answer belong to one store.
func (a *Answer) decideInLocal(ctx context.Context, s *set, r *Result) {
	q := question{ops: []headgate.Op{{
		Key: r.key, Policy: r.window.local, Window: r.window.number, Kind: r.mode, Cost: r.cost, Edges: r.window.edges(s.guard, true),
	}}}
	if err := q.put(ctx, s.config.Local); err != nil {
		a.StoreError = errors.Join(a.StoreError, err)
		r.Decision = unavailable(r)
		return
	}
	r.Decision, r.Limit = q.decisions[0], r.window.part
	r.Decision.Receipt = headgate.Receipt{}
}
