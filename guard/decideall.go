package guard

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// batch is the working memory of one DecideAll: the Ops of all requests, and the receipts that
// refused requests return.
type batch struct {
	question

	receipts []headgate.Receipt
	merged   merges // nil until a call has needed it
	recalled []recall
}

// DecideAll is Decide for many requests, in order, with one Apply of the store and at most one
// Return. A repeated key sees the units that earlier requests took. answers must be at least as
// long as requests. Each Answer has its own verdict, and its own Error if its request cannot be
// decided. Config.StoreTimeout bounds the whole call.
//
// Two cases need more. A request to a leaky bucket without a free place in its queue calls the
// store separately. Fair share decides before the store: a unit that it gets back, because a rule
// refuses, is free for the next DecideAll.
func (g *Guard) DecideAll(ctx context.Context, requests []headgate.Request, answers []Answer) {
	s := g.now()
	if s == nil {
		for i := range requests {
			answers[i].Error = g.question(nil, &requests[i], &answers[i], false)
		}
		return
	}
	if s.config.Decider != nil {
		g.decideAllElsewhere(ctx, s, requests, answers)
		return
	}
	b := g.state.batch()
	defer g.state.batches.Put(b)
	var waited time.Duration // for leases
	for i := range requests {
		a, from := &answers[i], len(b.ops)
		a.batch = b
		if a.Error = g.question(s, &requests[i], a, false); a.Error != nil {
			b.ops = b.ops[:from]
			continue
		}
		waited += s.takeLeases(ctx, a, s.config.LeaseTimeout-waited)
	}
	bounded, deadline, end := s.boundAfter(ctx, waited)
	defer end()
	var err error
	if len(b.ops) > 0 {
		err = g.decided(bounded, &b.question, nil, answers[:len(requests)])
	}
	for i := range requests {
		a := &answers[i]
		if a.Error == nil {
			a.deadline = deadline
			g.concludeOne(ctx, s, &requests[i], a, err)
		}
		a.batch, a.request = nil, &a.own
	}
	g.returnAll(ctx, deadline, b, answers[:len(requests)])
	clear(b.ops)
}

// batch gives empty working memory.
func (s *State) batch() *batch {
	b, ok := s.batches.Get().(*batch)
	if !ok {
		b = new(batch)
	}
	b.ops, b.receipts = b.ops[:0], b.receipts[:0]
	return b
}

// bound gives the context and the deadline of the store's budget, and a function that ends them.
func (s *set) bound(ctx context.Context) (context.Context, time.Time, func()) {
	return s.boundAfter(ctx, 0)
}

// boundAfter is bound for requests that have waited for a part of the budget.
func (s *set) boundAfter(ctx context.Context, waited time.Duration) (context.Context, time.Time, func()) {
	if s.config.StoreTimeout <= 0 {
		return ctx, time.Time{}, func() {}
	}
	bounded := newBudget(ctx, s.config.StoreTimeout-waited)
	return bounded, bounded.deadline, bounded.end
}

// concludeOne sets the verdict of one request, and reports it. err is the store's error.
func (g *Guard) concludeOne(ctx context.Context, s *set, req *headgate.Request, a *Answer, err error) {
	if err != nil && a.asked() {
		a.fallBack(ctx, s, err)
	} else {
		a.observe()
		a.decideOutside(ctx, s)
		a.settleFull()
	}
	g.conclude(ctx, s, req, a)
	s.observe(req, a)
}

// asked reports whether a result has an Op.
func (a *Answer) asked() bool {
	for i := range a.Results {
		if a.Results[i].op >= 0 {
			return true
		}
	}
	return false
}

// returnAll returns the units of the refused requests.
func (g *Guard) returnAll(ctx context.Context, deadline time.Time, b *batch, answers []Answer) {
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
