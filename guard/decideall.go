package guard

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// batch is the working memory of one DecideAll: what all requests ask of the store, and what
// refused ones return to it.
type batch struct {
	question

	receipts []headgate.Receipt
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
		a, from := &answers[i], len(b.ops)
		a.batch = b
		if a.Error = g.question(s, &requests[i], a); a.Error != nil {
			b.ops = b.ops[:from]
		}
	}
	bounded, deadline, end := s.bound(ctx)
	defer end()
	var err error
	if len(b.ops) > 0 {
		err = b.put(bounded, g.store)
	}
	for i := range requests {
		a := &answers[i]
		if a.Error == nil {
			a.deadline = deadline
			g.concludeOne(ctx, s, &requests[i], a, err)
		}
		a.batch, a.asks = nil, &a.own
	}
	g.returnAll(ctx, deadline, b, answers[:len(requests)])
	clear(b.ops)
}

// batch gives working memory that is empty.
func (s *State) batch() *batch {
	b, ok := s.batches.Get().(*batch)
	if !ok {
		b = new(batch)
	}
	b.ops, b.receipts = b.ops[:0], b.receipts[:0]
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

// concludeOne makes the verdict of one request, and reports it. err is the store's.
func (g *Guard) concludeOne(ctx context.Context, s *set, req *headgate.Request, a *Answer, err error) {
	if err != nil && a.asked() {
		a.fallBack(ctx, s, err)
	} else {
		a.hear()
		a.settleFull(ctx, s, g.store)
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

// returnAll returns what the refused requests took.
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
