package guard

import (
	"context"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Decide fills a with the decision of fair share and the rules on req: identify, match, decide,
// report. Facts about the sender that they need, and that the front has not set, are derived and
// stored in req.
//
// Fair share decides first. The rules do not decide on a request that fair share refuses, unless the
// Config is Independent. When a rule refuses, the units of fair share are returned.
//
// Decide fails only for an invalid cost: with a *CostError when the request states the cost, and
// otherwise with headgate.ErrBadCost; and with a *PermitError for a request that matches a rule outside its
// Permitted. When the store does not answer, each rule uses its fallback,
// and Answer.StoreError gives the reason. Decide enters no stage. A request that matches a rule with
// InFlight, Count or Settle gives an *EndError: these need Admit and Done. After an error, the answer
// has no results and the verdict Deny. A Guard that New did not make gives headgate.ErrNotMade.
//
// After the verdict Wait, the caller calls Wait or Cancel.
func (g *Guard) Decide(ctx context.Context, req *headgate.Request, a *Answer) error {
	s := g.decide(ctx, req, a, false)
	if a.Error == nil {
		s.observe(req, a)
	}
	return a.Error
}

// decide is DecideAll for one request, without the report. It gives the set that decided. ends says that the caller will tell
// the end of the request.
func (g *Guard) decide(ctx context.Context, req *headgate.Request, a *Answer, ends bool) *set {
	s := a.begun
	if s == nil || s.guard != g {
		s = g.now()
	}
	q := &a.own
	q.ops, q.receipts, q.ends = q.ops[:0], q.receipts[:0], ends
	_ = g.put(ctx, s, s.source(), q, unsafe.Slice(req, 1), unsafe.Slice(a, 1)) //nolint:gosec // A slice of the one value.
	return s
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
	answers = answers[:len(requests)]
	s := g.now()
	if s == nil {
		for i := range answers {
			answers[i].fail(headgate.ErrNotMade)
		}
		return
	}
	b := g.state.batch()
	defer g.state.batches.Put(b)
	_ = g.put(ctx, s, s.source(), &b.question, requests, answers)
	clear(b.ops)
	for i := range requests {
		if answers[i].Error == nil {
			s.observe(&requests[i], &answers[i])
		}
	}
}

// observe reports a decision.
func (s *set) observe(req *headgate.Request, a *Answer) {
	if s.config.Observer != nil && !req.Peek && !a.Exempt {
		s.config.Observer.Observe(req, a)
	}
}

// source gives the source that decides requests without a tree of descriptors.
func (s *set) source() source {
	if s != nil && s.config.Decider != nil {
		return deciderSource{s}
	}
	return ruleSource{s}
}

// ruleFacts are what the rules note in an Answer.
type ruleFacts struct {
	matched    []int
	resolved   rule.Needs // the facts about the sender that are known
	ends       *prepared  // the first rule that needs the end of the request
	soft       bool       // one of the rules has a soft limit
	held       bool       // one of the rules has InFlight
	lacking    bool       // an enforced rule refuses a request that lacks a part of its key
	shadowPlan bool       // the plan of an enforced rule's customer is in shadow
	watching   bool       // a key is looked up for a ban by an operator
}

func (f *ruleFacts) reset() {
	f.matched, f.resolved, f.ends, f.soft, f.held = f.matched[:0], 0, nil, false, false
	f.lacking, f.shadowPlan, f.watching = false, false, false
}

// ruleSource decides by fair share, rules and quotas.
type ruleSource struct{ *set }

func (s ruleSource) ask(ctx context.Context, q *question, requests []headgate.Request, answers []Answer) (waited time.Duration) {
	for i := range requests {
		a, from := &answers[i], len(q.ops)
		if a.Error = s.askOne(q, &requests[i], a); a.Error != nil {
			q.ops = q.ops[:from]
			continue
		}
		waited += s.takeLeases(ctx, a, s.config.LeaseTimeout-waited)
	}
	return waited
}

// askOne asks fair share, and collects the Ops of one request.
func (s ruleSource) askOne(q *question, req *headgate.Request, a *Answer) error {
	a.reset()
	a.from = s.set
	switch {
	case s.set == nil:
		a.Verdict = headgate.Deny
		return headgate.ErrNotMade
	case req.Cost < 0 || req.Cost > headgate.MaxUnits:
		a.Verdict = headgate.Deny
		return headgate.ErrBadCost
	}
	sent := req.Path
	req.Path = s.config.Folds.Path(sent)
	if early := s.needs&rule.NeedClientIP | s.logged; early != 0 {
		s.resolve(req, a, early)
	}
	if a.Exempt = s.exempt.Has(req); a.Exempt {
		req.Path = sent
		return nil
	}
	err := s.addResults(req, a)
	if err == nil && a.ends != nil && !q.ends {
		err = &EndError{a.ends.Name, a.ends.NeedsEnd()}
	}
	req.Path = sent // The service gets the path as it was sent.
	if err != nil {
		a.unshare()
		s.guard.state.queues.withdraw(a)
		a.fail(err) // The results are those of an earlier request.
	}
	return err
}

func (s ruleSource) settle(ctx context.Context, _ int, req *headgate.Request, a *Answer, err error) {
	a.read(ctx, s.set, err)
	s.guard.conclude(ctx, s.set, req, a)
}
