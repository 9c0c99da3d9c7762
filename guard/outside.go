package guard

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// opOutside is the value of Result.op of a limit with a calendar period while the store's clock is outside of the
// edges: the rule's fallback decides.
const opOutside = -6

// outsidePause is the time for which limits with a calendar period are left out after the store's clock was outside
// of their edges. Then one request has the store decide them again.
const outsidePause = time.Second

// outside keeps that the store's clock is outside of the edges of calendar windows. Requests then leave out their
// limits with a calendar period, so that the store decides the others.
type outside struct {
	// until is the time of the guard's clock from which a request tries again; 0 while the store's clock is right.
	until atomic.Int64
	err   atomic.Pointer[headgate.EdgeError]
}

// note keeps the error of a store, and gives it; nil for other errors.
func (o *outside) note(err error, now headgate.Instant) *headgate.EdgeError {
	edge, ok := errors.AsType[*headgate.EdgeError](err)
	if !ok {
		return nil
	}
	o.err.Store(edge)
	o.until.Store(max(1, int64(now.Add(outsidePause))))
	return edge
}

// out reports whether a request leaves out its limits with a calendar period. Of the requests after the pause, one
// does not.
func (o *outside) out(now headgate.Instant) bool {
	until := o.until.Load()
	return until != 0 && (int64(now) < until || !o.until.CompareAndSwap(until, int64(now.Add(outsidePause))))
}

// leavesOut reports whether the store does not decide a result, because its clock is outside of the edges.
func (a *Answer) leavesOut(r *Result) bool {
	if r.window.calendar == nil {
		return false
	}
	g := a.from.guard
	if g.state.outside.until.Load() == 0 {
		return false
	}
	if !a.tries && !a.out {
		a.out = g.state.outside.out(g.clock.Now())
		a.tries = !a.out
	}
	if a.out {
		r.op = opOutside
	}
	return a.out
}

// decided has the store decide a question. If the store's clock is outside of the edges of calendar windows, the store
// decides the other limits: those of all rules in one group have counted nothing yet. Groups of their own, such as those
// of rules in shadow, count twice then, at most once in each outsidePause.
func (g *Guard) decided(ctx context.Context, q *question, one *Answer, all []Answer) error {
	err := q.put(ctx, g.store)
	if err == nil {
		if g.state.outside.until.Load() != 0 && q.hasEdges() {
			g.state.outside.until.Store(0)
		}
		return nil
	}
	if g.state.outside.note(err, g.clock.Now()) == nil {
		return err
	}
	moved := q.withoutEdges()
	if one != nil {
		one.move(moved)
	}
	for i := range all {
		all[i].move(moved)
	}
	if len(q.ops) == 0 {
		return nil
	}
	return q.put(ctx, g.store)
}

func (q *question) hasEdges() bool {
	for i := range q.ops {
		if q.ops[i].Edges != nil {
			return true
		}
	}
	return false
}

// withoutEdges removes the Ops with edges. It gives the new position of each Op, or opOutside.
func (q *question) withoutEdges() []int {
	moved, kept := make([]int, len(q.ops)), q.ops[:0]
	for i := range q.ops {
		if q.ops[i].Edges != nil {
			moved[i] = opOutside
			continue
		}
		moved[i] = len(kept)
		kept = append(kept, q.ops[i])
	}
	clear(q.ops[len(kept):])
	q.ops = kept
	return moved
}

// move follows the Ops of the results to their new positions.
func (a *Answer) move(moved []int) {
	if a.Error != nil {
		return
	}
	for i := range a.Results {
		if r := &a.Results[i]; r.op >= 0 {
			r.op = moved[r.op]
			a.out = a.out || r.op == opOutside
		}
	}
}

// decideOutside decides the results that the store has left out, by the fallbacks of their rules.
func (a *Answer) decideOutside(ctx context.Context, s *set) {
	if !a.out {
		return
	}
	a.usual = false
	if edge := s.guard.state.outside.err.Load(); edge != nil {
		a.StoreError = edge
	}
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
