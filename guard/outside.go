package guard

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// opOutside is the value of Result.op of a limit with a calendar period while the store's clock is outside of the
// edges: the rule's fallback decides.
const opOutside = -6

// decided has the store decide a question. If the store's clock is outside of the edges of calendar windows, a second call
// has what the store has not decided, without the Ops of these edges: other nodes, and longer windows, are not affected. If
// another clock is outside too, a third call is without all Ops with edges.
func (g *Guard) decided(ctx context.Context, q *question, answers []Answer) error {
	err := q.put(ctx, g.store)
	for _, every := range [...]bool{false, true} {
		edge, outside := errortype.As[*headgate.EdgeError](err)
		if !outside {
			return err
		}
		rest, places := q.rest(edge.At, every)
		for i := range answers {
			answers[i].leaveOut(places, edge)
		}
		err = nil
		if len(rest.ops) > 0 {
			err = rest.put(ctx, g.store)
		}
		for i, place := range places {
			if place >= 0 {
				q.decisions[i] = rest.decisions[place]
			}
		}
	}
	return err
}

// rest gives the Ops that a store has not decided, except those whose edges do not contain a time of the store, or every Op
// with edges. places has the position of each Op in the rest: opDecided if it is decided, and opOutside if it is left out.
func (q *question) rest(at headgate.Instant, every bool) (rest question, places []int) {
	places = make([]int, len(q.ops))
	group, last := uint8(0), 0 // Neighbours of the rest are of one group only if they were.
	for i := range q.ops {
		op := &q.ops[i]
		if i > 0 && op.Group != q.ops[i-1].Group {
			last = len(rest.ops)
		}
		if q.decisions[i] != headgate.Undecided() {
			places[i] = opDecided
			continue
		}
		if op.Edges != nil {
			if _, _, contains := op.Edges.Window(at); every || !contains {
				places[i] = opOutside
				continue
			}
		}
		if len(rest.ops) == last {
			group++
		}
		places[i] = len(rest.ops)
		rest.ops = append(rest.ops, *op)
		rest.ops[places[i]].Group = group
	}
	return rest, places
}

// leaveOut marks the results whose Ops are left out because of an error.
func (a *Answer) leaveOut(places []int, edge *headgate.EdgeError) {
	if a.Error != nil {
		return
	}
	for i := range a.Results {
		if r := &a.Results[i]; r.op >= 0 && places[r.op] == opOutside {
			r.op, a.out, a.StoreError = opOutside, true, edge
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
