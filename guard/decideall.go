package guard

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// all is the working memory of one DecideAll.
type all struct {
	ops       []headgate.Op
	decisions []headgate.Decision
	receipts  []headgate.Receipt
	ends      []int // of the Ops of each request
}

// DecideAll is Decide for many requests, in their order, by one Apply of the store and at
// most one Return: a key that repeats sees what the requests before took. answers is at
// least as long as requests; each Answer has its own verdict, and its own Error where its
// request cannot be decided. Config.StoreTimeout bounds the whole. Requests of leaky
// buckets whose queue has no free place are asked about one by one after that. Fair share
// decides before the store is asked: a unit of it that comes back because a rule refuses
// is there for the next DecideAll.
func (g *Guard) DecideAll(ctx context.Context, requests []headgate.Request, answers []Answer) {
	s := g.now()
	if s == nil {
		for i := range requests {
			answers[i].Error = g.question(nil, &requests[i], &answers[i])
		}
		return
	}
	b := g.state.batch()
	defer g.state.batches.Put(b)
	for i := range requests {
		a := &answers[i]
		if a.Error = g.question(s, &requests[i], a); a.Error == nil {
			b.add(a.ops)
		}
		b.ends = append(b.ends, len(b.ops))
	}
	bounded, deadline, end := s.bound(ctx)
	defer end()
	err := b.apply(bounded, g.store)
	from := 0
	for i := range requests {
		a, to := &answers[i], b.ends[i]
		if a.Error == nil {
			a.deadline, a.together = deadline, &b.receipts
			g.concludeOne(ctx, s, &requests[i], a, b.decisions[from:to], err)
			a.together = nil
		}
		from = to
	}
	g.returnAll(ctx, deadline, b, answers[:len(requests)])
	clear(b.ops)
}

// batch gives working memory that is empty.
func (s *State) batch() *all {
	b, ok := s.batches.Get().(*all)
	if !ok {
		b = new(all)
	}
	b.ops, b.receipts, b.ends = b.ops[:0], b.receipts[:0], b.ends[:0]
	return b
}

// bound gives the context and the deadline of the store's budget, and what ends it.
func (s *set) bound(ctx context.Context) (context.Context, time.Time, func()) {
	if s.config.StoreTimeout <= 0 {
		return ctx, time.Time{}, func() {}
	}
	bounded := newBudget(ctx, s.config.StoreTimeout)
	return bounded, bounded.deadline, bounded.end
}

// add adds the Ops of one request. Neighbouring groups of two requests differ.
func (b *all) add(ops []headgate.Op) {
	if len(ops) == 0 {
		return
	}
	var shift uint8
	if n := len(b.ops); n > 0 {
		shift = b.ops[n-1].Group + 1 - ops[0].Group
	}
	for _, op := range ops {
		op.Group += shift
		b.ops = append(b.ops, op)
	}
}

// apply asks the store about all of them.
func (b *all) apply(ctx context.Context, store headgate.Store) error {
	for len(b.decisions) < len(b.ops) {
		b.decisions = append(b.decisions, headgate.Decision{})
	}
	if len(b.ops) == 0 {
		return nil
	}
	return store.Apply(ctx, b.ops, b.decisions[:len(b.ops)])
}

// concludeOne makes the verdict of one request, and reports it.
func (g *Guard) concludeOne(
	ctx context.Context, s *set, req *headgate.Request, a *Answer, decisions []headgate.Decision, err error,
) {
	if err != nil && len(decisions) > 0 {
		if cap(a.decisions) < len(a.ops) {
			a.decisions = make([]headgate.Decision, len(a.ops))
		}
		a.fallBack(ctx, s, err)
	} else {
		a.decisions = append(a.decisions[:0], decisions...)
		a.hear()
		a.settleFull(ctx, s, g.store)
	}
	g.conclude(ctx, s, req, a)
	s.observe(req, a)
}

// returnAll returns what the refused requests took.
func (g *Guard) returnAll(ctx context.Context, deadline time.Time, b *all, answers []Answer) {
	if len(b.receipts) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if !deadline.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = bounded
	}
	if err := notGivenBack(g.store.Return(ctx, b.receipts)); err != nil {
		for i := range answers {
			if answers[i].denied {
				answers[i].StoreError = errors.Join(answers[i].StoreError, err)
			}
		}
	}
}
