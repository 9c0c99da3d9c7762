package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
)

// Explanation is what a Guard would decide on a request now, and what the decision depends on.
type Explanation struct {
	// Limits has, for each of the Answer's Results, what its key has used of the limit before the request. It is nil for results of fair
	// share, of stages and of leases, and while the store does not answer.
	Limits []*LimitState
	// Slots are the requests in flight of the results of Rule.InFlight, and nil for the others.
	Slots []*SlotState
	// Shares are the shares before the request; Client is the name that fair share counts it for, and "" without fair share or a name.
	Shares fairshare.Shares
	Client string
	// QueueWait says how long a stage that holds the request probably keeps it. 0 is not known.
	QueueWait time.Duration
	// At is the time of the store's clock; 0 if the store was not asked.
	At headgate.Instant
}

// PreviewStage is a Stage that says what Enter would decide, and changes nothing. wait is the probable time of a Wait; 0 is not known.
type PreviewStage interface {
	Stage
	Preview(p *Pass) (d headgate.Decision, wait time.Duration)
}

var (
	// ErrDeciderExplains says that a Decider decides the requests, whose limits this Guard does not know.
	ErrDeciderExplains = errors.New("guard: another server decides the requests, and this Guard has no counters of them: ask that server")
	errNoKind          = errors.New("guard: only a request that takes units can be explained: leave out Kind")
)

// Explain fills a with the decision that Admit would make on req now, and takes nothing: no units, no slots, no place in a queue. Nothing
// is counted or reported, no ban begins, and no client of fair share joins. Unlike a decision on a request with Peek, fair share and
// stages decide too, and a request that would wait has the verdict Wait. A stage that is no PreviewStage allows the request.
//
// The fields for the sender are derived and stored in req, and Begin may come before, as for Decide. Admit may decide otherwise at the
// same moment by units that this instance has taken ahead of need, by refusals that it repeats from memory, and after the first lease of
// a resource. A limit with CountRejected counts the refused attempt too, and then refuses for longer. The cost is that of three calls of
// the store. The errors are those of Admit, and ErrDeciderExplains.
func (g *Guard) Explain(ctx context.Context, req *headgate.Request, a *Answer) (*Explanation, error) {
	s := a.begun
	if s == nil || s.guard != g {
		s = g.now()
	}
	switch {
	case s == nil:
		a.fail(headgate.ErrNotMade)
		return nil, a.Error
	case s.config.Decider != nil:
		a.fail(ErrDeciderExplains)
		return nil, a.Error
	case req.Kind != headgate.Take:
		a.fail(errNoKind)
		return nil, a.Error
	}
	x := new(Explanation)
	peeked := req.Peek
	req.Peek = true
	defer func() { req.Peek = peeked }()
	a.own.explains = x
	defer func() { a.own.explains = nil }()
	g.decide(ctx, req, a, true)
	if a.Error != nil {
		return nil, a.Error
	}
	s.explainLimits(ctx, a, x)
	if a.Verdict != headgate.Deny && !a.Exempt {
		s.explainSlots(ctx, a, x)
	}
	if a.Verdict != headgate.Deny && !a.Exempt {
		s.explainStages(req, a, x)
	}
	return x, nil
}

// explains gives the Explanation that the Answer is for; nil for a decision.
func (a *Answer) explains() *Explanation {
	if a.request == nil {
		return nil
	}
	return a.request.explains
}

// explainShare has fair share say what it would decide.
func (s *set) explainShare(x *Explanation, now headgate.Instant, r fairshare.Request) headgate.Decision {
	d, shares := s.share.limiter.Preview(now, r)
	x.Shares, x.Client = shares, r.Client
	return d
}

// promises is place for an explanation: it looks for spare units of the key's queue, and takes none.
func (s *set) promises(p *prepared, r *Result, a *Answer, noWait bool) bool {
	w := r.window
	if noWait || w.beside || !w.waits() || p.places.waiting.Load() >= int64(p.maxWaiters()) {
		return false
	}
	id, _ := s.guard.queueOf(a, r)
	return p.state.queues.reserve(r, id, false)
}

// explainWaits turns the Peeks of limits that requests wait for into what their bookings would have said.
func (a *Answer) explainWaits(noWait bool) {
	for i := range a.Results {
		r := &a.Results[i]
		if r.op < 0 || r.window == nil || !r.window.waits() || r.Fallback && a.local == nil {
			continue
		}
		full := r.from.places.waiting.Load() >= int64(r.Rule.maxWaiters())
		switch {
		case noWait || full:
			r.full = !noWait
			r.peekedNow()
		case r.window.mode == headgate.Book:
			r.peekedBooking()
		}
	}
	a.usual = false
	a.settleFull()
}

// besideRefuses reports whether a limit of a rule that degrades is used up, so that a decision books no departure for its others.
func (a *Answer) besideRefuses(of *Rule) bool {
	for i := range a.Results {
		r := &a.Results[i]
		if r.Rule == of && r.window.beside && (r.Decision.Verdict == headgate.Deny || r.Decision.Reason == headgate.Degraded) {
			return true
		}
	}
	return false
}

// peekedBooking turns the decision on a Peek into that of a booking: a wait of at most maxWait.
func (r *Result) peekedBooking() {
	d, most := &r.Decision, r.window.maxWait
	queue := d.ResetAfter // of the units that came before, after a refusal
	switch {
	case d.Verdict == headgate.Deny && d.Reason == headgate.QueueFull:
		d.RetryAfter = max(d.RetryAfter, queue-most)
	case d.Verdict == headgate.Wait && d.RetryAfter > most:
		d.ResetAfter, d.Remaining = d.RetryAfter, d.Remaining+r.cost // A refusal takes nothing.
		d.Verdict, d.Reason, d.RetryAfter = headgate.Deny, headgate.WaitTooLong, d.RetryAfter-most
	case d.Verdict == headgate.Deny && d.Reason == headgate.OverLimit && d.RetryAfter > most:
		d.Reason, d.RetryAfter = headgate.WaitTooLong, d.RetryAfter-most
	case d.Verdict == headgate.Deny && d.Reason == headgate.OverLimit:
		d.Verdict, d.Reason, d.Remaining = headgate.Wait, headgate.Scheduled, 0
		d.ResetAfter = d.RetryAfter + refill(r.Limit) // The request leaves an empty bucket.
	}
}

// refill gives the time in which an empty bucket fills, rounded to nanoseconds.
func refill(l headgate.Limit) time.Duration {
	if l.Burst <= 0 || l.Count <= 0 {
		return l.Per
	}
	return time.Duration(float64(l.Per) / float64(l.Count) * float64(l.Burst))
}

// peekedNow turns the decision on a Peek into that for a request without a free place to wait.
func (r *Result) peekedNow() {
	d := &r.Decision
	switch {
	case d.Verdict == headgate.Wait:
		d.Verdict, d.Reason, d.ResetAfter, d.Remaining = headgate.Deny, headgate.OverLimit, d.RetryAfter, d.Remaining+r.cost
	case d.Reason == headgate.QueueFull:
		d.RetryAfter = max(d.RetryAfter, d.ResetAfter)
	}
}

// explainLimits reads what the keys have used of their limits.
func (s *set) explainLimits(ctx context.Context, a *Answer, x *Explanation) {
	x.Limits, x.Slots = make([]*LimitState, len(a.Results)), make([]*SlotState, len(a.Results))
	var ops []headgate.Op
	var of []int
	for i := range a.Results {
		if r := &a.Results[i]; (r.op >= 0 || r.op == opReserved) && !r.Fallback && r.window.kind != kindOperatorBan {
			of = append(of, i)
		}
	}
	for cost := range int64(2) {
		for _, i := range of {
			r := &a.Results[i]
			ops = append(ops, headgate.Op{
				Key: r.key, Policy: r.window.id, Window: r.window.number, Group: uint8(cost), Kind: headgate.Peek, Cost: cost,
				Edges: r.window.edges(s.guard, false),
			})
		}
	}
	if len(ops) == 0 {
		return
	}
	decided := make([]headgate.Decision, len(ops))
	bounded, end := s.bound(ctx)
	defer end()
	if err := s.guard.store.Apply(bounded, ops, decided); err != nil {
		a.StoreError = errors.Join(a.StoreError, fmt.Errorf("guard: what was used is not known: %w", err))
		return
	}
	x.At = decided[0].At
	for n, i := range of {
		x.Limits[i] = a.Results[i].window.stateOf(&decided[n], &decided[len(of)+n])
	}
}

// stateOf reads what is used from the decisions on Peeks of cost 0 and 1.
func (w *window) stateOf(d, next *headgate.Decision) *LimitState {
	state := &LimitState{
		Policy: w.policy, Algorithm: w.algorithm, Limit: w.limit, Used: max(0, d.Limit-d.Remaining), Remaining: d.Remaining,
		Next: next.RetryAfter, Full: max(d.ResetAfter, next.RetryAfter), // The store may decide the two one after the other.
		Never: next.Reason == headgate.Never,
	}
	if w.quota.beyond {
		state.Remaining = max(0, w.quota.included-state.Used) // The store counts up to the hard limit.
	}
	return state
}

// explainSlots decides the bounds of requests in flight, as takeSlots does. Without an answer of the store, the fallbacks decide.
func (s *set) explainSlots(ctx context.Context, a *Answer, x *Explanation) {
	for i := range a.Results {
		r := &a.Results[i]
		if r.window == nil || r.window.kind != kindSlots {
			continue
		}
		bounded, end := s.bound(ctx)
		used, at, err := r.from.slotsUsed(bounded, r.key)
		end()
		if err != nil {
			a.StoreError = errors.Join(a.StoreError, err)
			r.Fallback, r.Decision = true, unavailable(r)
		} else {
			x.Slots[i] = &SlotState{Used: used, Limit: r.Limit.Count}
			left := max(0, r.Limit.Count-used-1)
			r.Decision = headgate.Decision{Reason: headgate.WithinLimit, Limit: r.Limit.Count, Remaining: left, At: at}
			if used >= r.Limit.Count {
				r.Decision.Verdict, r.Decision.Reason, r.Decision.Remaining = headgate.Deny, headgate.InFlight, 0
			}
		}
		if r.Decision.Verdict == headgate.Deny && r.Enforced() {
			a.Verdict, a.closest = headgate.Deny, i
			return
		}
	}
}

// explainStages asks the stages in their order, until one holds or refuses the request.
func (s *set) explainStages(req *headgate.Request, a *Answer, x *Explanation) {
	if a.Verdict == headgate.Wait || len(s.stages.all) == 0 {
		return // The stages are entered after the wait.
	}
	t := &Ticket{Answer: a, guard: s.guard, set: s}
	t.tell()
	for i, stage := range s.stages.all {
		preview, ok := stage.(PreviewStage)
		if !ok {
			continue
		}
		d, wait := preview.Preview(&Pass{Request: req, handle: Handle{ticket: t, stage: i}, entered: t.now})
		t.record(i, d)
		x.Limits, x.Slots = append(x.Limits, nil), append(x.Slots, nil)
		if s.stages.rules[i].Mode != Enforce || d.Verdict == headgate.Allow {
			continue
		}
		x.QueueWait = wait
		if a.Verdict = d.Verdict; d.Verdict == headgate.Deny {
			a.closest = len(a.Results) - 1
		}
		return
	}
}

// BanOf describes the ban that refuses a result; nil for one with another reason. The answer is one of Explain, or of a decision before
// the next. Only the instance in which an operator has banned a key knows the reason.
func (g *Guard) BanOf(req *headgate.Request, a *Answer, r *Result) *BanEntry {
	if r == nil || r.Decision.Reason != headgate.Banned || r.from == nil {
		return nil
	}
	entry := &BanEntry{
		ID: banID(r.ownKey()), Rule: r.Rule.Name, Key: r.keyText(req, a), Shadow: !r.Enforced(),
		Until: r.Decision.At.Add(r.Decision.RetryAfter).Time(), Operator: r.window != nil && r.window.kind == kindOperatorBan,
	}
	b := &g.state.bans
	b.mu.RLock()
	defer b.mu.RUnlock()
	if met, found := b.met[r.KeyHash()]; found && met.why.Load() != nil {
		entry.Operator, entry.Reason = true, met.why.Load().text
	}
	return entry
}
