package guard

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// source adds the Ops of the limits that decide requests, and reads the store's decisions on them. Every decision of a Guard goes
// through Guard.put, whatever its source: fair share, rules and quotas (ruleSource), a tree of descriptors (*treeCall), buckets that
// clients send (*SentBatch), or a Decider (deciderSource).
type source interface {
	// ask prepares the Answers, and adds what the store is to decide to q. It decides the rest at once, and gives the time that it
	// has waited. A request that cannot be decided gets an Error, and has no Ops.
	ask(ctx context.Context, q *question, requests []headgate.Request, answers []Answer) (waited time.Duration)
	// settle reads the decisions on request i, which has no Error. err is that of the store.
	settle(ctx context.Context, i int, req *headgate.Request, a *Answer, err error)
}

// question is one call of a store: its Ops, the Decisions on them, and the units that refused requests return.
type question struct {
	ops       []headgate.Op
	decisions []headgate.Decision
	receipts  []headgate.Receipt
	ends      bool // the caller will say when the requests end
	// explains is what a decision that takes nothing is for; nil for others. See Guard.Explain.
	explains *Explanation
}

// storeFacts are what an Answer knows about its call of the store.
type storeFacts struct {
	own       question
	request   *question // own, or that of a DecideAll in progress
	group     uint8     // of the next Op
	keys      []byte
	usual     bool             // every decision is WithinLimit
	out       bool             // limits with a calendar period are left to their fallbacks: the store's clock is outside of their edges
	deadline  time.Time        // of the store's budget; zero without one
	local     headgate.Store   // the store of the receipts after a local fallback; nil means the guard's store
	countedAt headgate.Instant // the time of what Config.Meter has counted
}

func (f *storeFacts) reset() {
	f.group, f.keys, f.usual, f.out, f.deadline, f.local = 0, f.keys[:0], true, false, time.Time{}, nil
}

// batch is the working memory of one call for many requests.
type batch struct {
	question

	tree     treeCall
	merged   merges // nil until a call has needed it
	recalled []recall
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

// put decides requests with one Apply of the store and at most one Return. q has no Ops yet, but those of a SentBatch. The error is
// that of the store: the answers have it too.
func (g *Guard) put(ctx context.Context, s *set, from source, q *question, requests []headgate.Request, answers []Answer) error {
	for i := range answers {
		answers[i].request = q
	}
	waited := from.ask(ctx, q, requests, answers)
	var deadline time.Time
	var err error
	if len(q.ops) > 0 {
		deadline, err = g.apply(ctx, s, q, answers, waited)
	}
	for i := range answers {
		a := &answers[i]
		if a.Error == nil {
			a.deadline = deadline
			from.settle(ctx, i, &requests[i], a, err)
		}
		a.request = &a.own
	}
	if len(q.receipts) > 0 {
		g.returnAll(ctx, deadline, q, answers)
	}
	return err
}

// apply calls the store, within its budget. Requests have waited for a part of it.
func (g *Guard) apply(ctx context.Context, s *set, q *question, answers []Answer, waited time.Duration) (deadline time.Time, err error) {
	if s.config.StoreTimeout <= 0 {
		return deadline, g.decided(ctx, q, answers)
	}
	bounded := newBudget(ctx, s.config.StoreTimeout-waited)
	defer bounded.end()
	return bounded.deadline, g.decided(bounded, q, answers)
}

// read copies the store's decision on each Op to its result, or has the fallbacks decide after an error of the store.
func (a *Answer) read(ctx context.Context, s *set, err error) {
	if err != nil && a.asked() {
		a.fallBack(ctx, s, err)
		return
	}
	for i := range a.Results {
		r := &a.Results[i]
		switch r.op {
		case opDecided, opReserved, opOutside:
		case opNone:
			r.Decision = impossible(r)
		default:
			if r.Decision = a.request.decisions[r.op]; r.mode == headgate.TakeIfAll {
				r.divide(a.request.ops[r.op].Cost)
			}
		}
		a.usual = a.usual && r.Decision.Reason == headgate.WithinLimit
	}
	a.decideOutside(ctx, s)
	a.settleFull()
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

// returnAll returns the units of the refused requests.
func (g *Guard) returnAll(ctx context.Context, deadline time.Time, q *question, answers []Answer) {
	if !deadline.IsZero() { // The deadline bounds the store's time. The caller's context may have ended already.
		bounded, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
		ctx = bounded
	}
	if err := notGivenBack(g.store.Return(ctx, q.receipts)); err != nil {
		for i := range answers {
			if answers[i].denied {
				answers[i].StoreError = errors.Join(answers[i].StoreError, err)
			}
		}
	}
}
