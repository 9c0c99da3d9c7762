package guard

import (
	"context"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/queue"
)

// waitFacts are the waits of an Answer.
type waitFacts struct {
	waiter  *waiter
	shadows []*waiter // of shadow rules
}

func (f *waitFacts) reset() {
	clear(f.shadows)
	f.waiter, f.shadows = nil, f.shadows[:0]
}

// waiter is a request that waits for its departure. From the decision to the departure, it
// counts for each rule that makes it wait, whether or not a front waits. So a front that
// forgets a request loses no place.
type waiter struct {
	done chan struct{}
	// waitQueues.mu guards the fields below.
	rules   []*places
	members []*member
	pending int    // the number of members without a departure
	waits   bool   // all members exist, and the request has neither departed nor left
	notify  func() // replaces done for a request without a goroutine
}

func newWaiter() *waiter { return &waiter{done: make(chan struct{}, 1)} }

// goIfDone lets the request go when no member is pending. The caller holds mu.
func (s *waitQueues) goIfDone(w *waiter) {
	if w.waits && w.pending == 0 {
		w.waits = false
		w.release()
		if w.notify != nil {
			s.gone = append(s.gone, w.notify) // unlock calls notify after mu is released.
			return
		}
		w.done <- struct{}{} // done has capacity one, and this send happens once.
	}
}

func (w *waiter) release() {
	for _, rule := range w.rules {
		rule.waiting.Add(-1)
	}
}

// enqueueWaits gives waiting requests a place among the waiters of each rule. A rule without a free
// place refuses. Shadow rules count as if they were enforced alone.
func (g *Guard) enqueueWaits(a *Answer) {
	if a.Verdict == headgate.Wait {
		w := newWaiter()
		if a.admit(w, 0, len(a.Results), Enforce) {
			a.waiter = w
			g.start(a, w, 0, len(a.Results), Enforce)
		} else {
			a.judge()
		}
	}
	g.enqueueShadows(a)
	g.state.queues.withdraw(a)
}

// enqueueShadows handles the shadow rules one by one: each waits, or refuses, alone.
func (g *Guard) enqueueShadows(a *Answer) {
	for i := 0; i < len(a.Results); {
		from, r, waits := i, a.Results[i].Rule, false
		for ; i < len(a.Results) && a.Results[i].Rule == r; i++ {
			waits = waits || a.Results[i].Decision.Verdict == headgate.Wait
		}
		if !waits || a.Results[from].Enforced() || a.refusedBy(r) {
			continue
		}
		if w := newWaiter(); a.admit(w, from, i, Shadow) {
			a.shadows = append(a.shadows, w)
			g.start(a, w, from, i, Shadow)
		}
	}
}

// admit counts w as a waiter of each rule, in the results from..to, that makes it wait. If one
// of these rules has no free place, admit counts nothing, turns that rule's waits into
// refusals, and reports false. This happens only to simultaneous decisions: each decision
// looks for a place before it books.
func (a *Answer) admit(w *waiter, from, to int, mode Mode) bool {
	var last *Rule
	for i := from; i < to; i++ {
		r := &a.Results[i]
		if r.Rule.Mode != mode || r.Decision.Verdict != headgate.Wait || r.Rule == last {
			continue
		}
		last = r.Rule
		w.rules = append(w.rules, r.from.places)
		if r.from.places.waiting.Add(1) > int64(r.Rule.maxWaiters()) {
			w.release()
			a.full(i)
			return false
		}
	}
	return true
}

// full turns the waits of a rule, from result i on, into refusals.
func (a *Answer) full(i int) {
	for r := a.Results[i].Rule; i < len(a.Results) && a.Results[i].Rule == r; i++ {
		if d := &a.Results[i].Decision; d.Verdict == headgate.Wait {
			d.Verdict, d.Reason = headgate.Deny, headgate.TooManyWaiters
		}
	}
	a.denied = true
}

// start adds w to the queues of the results that make it wait.
func (g *Guard) start(a *Answer, w *waiter, from, to int, mode Mode) {
	s := g.state.queues
	s.mu.Lock()
	defer s.unlock()
	now := s.now()
	for i := from; i < to; i++ {
		r := &a.Results[i]
		if r.Rule.Mode != mode || r.Decision.Verdict != headgate.Wait {
			continue
		}
		if r.member == nil {
			id, pace := g.queueOf(a, r)
			s.join(r, id, pace, now)
		}
		r.member.waiter = w
		w.members = append(w.members, r.member)
		if !r.member.gone {
			w.pending++
		}
	}
	w.waits = true
	s.goIfDone(w)
}

// withdraw returns the spare units taken for requests that do not wait.
func (s *waitQueues) withdraw(a *Answer) {
	for i := range a.Results {
		if m := a.Results[i].member; m != nil && m.waiter == nil {
			s.mu.Lock()
			m.leave(s.now())
			s.unlock()
			a.Results[i].member = nil
		}
	}
}

// queueOf gives the queue id of a result's key and limit, and the pace of that queue.
func (g *Guard) queueOf(a *Answer, r *Result) (id queueID, pace queue.Pace) {
	w := r.window
	id = queueID{store: g.store, key: r.key, policy: w.id, window: w.number, shadow: !r.Enforced()}
	if r.Fallback && a.local != nil {
		id.store, id.policy = a.local, w.local
		return id, queue.PaceOf(w.algorithm, w.part)
	}
	return id, queue.PaceOf(w.algorithm, w.limit)
}

func (r *Rule) maxWaiters() int {
	if r.Exceed.MaxWaiters > 0 {
		return r.Exceed.MaxWaiters
	}
	return DefaultMaxWaiters
}

// Wait holds the request of an answer with the verdict Wait until its departure. The departure
// is as announced, or earlier when other requests leave. If ctx ends first, Wait gives the
// departure to the next waiting request, returns all other units of the request, those of
// fair share too, and gives the error of ctx.
func (g *Guard) Wait(ctx context.Context, a *Answer) error {
	if g.now() == nil {
		return headgate.ErrNotMade
	}
	w := a.waiter
	if w == nil {
		return nil
	}
	select {
	case <-w.done:
		a.waiter = nil
		return nil
	case <-ctx.Done():
	}
	if !g.state.queues.leave(w) {
		<-w.done // The departure came first.
		a.waiter = nil
		return nil
	}
	// The units are returned although the request's context has ended.
	if err := g.Cancel(context.WithoutCancel(ctx), a); err != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return ctx.Err()
}

// Cancel returns the units of an answer when its request will not be made, for example because
// the client left. Call it before Wait, or instead of Wait. A booked departure goes to the
// next waiting request of the key. A departure that no request needs goes back to the store.
func (g *Guard) Cancel(ctx context.Context, a *Answer) error {
	s := g.now()
	if s == nil {
		return headgate.ErrNotMade
	}
	g.leaveQueues(a)
	a.uncount()
	if budget := s.config.StoreTimeout; budget > 0 && a.local == nil {
		bounded, cancel := context.WithTimeout(ctx, budget)
		defer cancel()
		ctx = bounded
	}
	return g.giveUp(ctx, a)
}

// leaveQueues returns the share of a request, and removes the request from all queues.
func (g *Guard) leaveQueues(a *Answer) {
	a.unshare()
	a.unlease(true)
	if a.waiter != nil {
		g.state.queues.leave(a.waiter)
		a.waiter = nil
	}
	for _, w := range a.shadows {
		g.state.queues.leave(w)
	}
	a.shadows = a.shadows[:0]
}

// leave removes a waiter from its queues and frees its places. It reports false when the
// waiter's departure has come, or the waiter has left.
func (s *waitQueues) leave(w *waiter) bool {
	s.mu.Lock()
	defer s.unlock()
	now := s.now()
	for _, m := range w.members {
		if !m.gone {
			m.queue.serve(now) // Requests with a departure at or before now go, w included.
			m.queue.rearm()
		}
	}
	if !w.waits {
		return false
	}
	w.waits = false
	for _, m := range w.members {
		m.leave(now)
	}
	w.release()
	return true
}

// giveUp returns the units of an answer.
func (g *Guard) giveUp(ctx context.Context, a *Answer) error {
	var first error
	a.own.receipts, first = a.release(ctx, a.own.receipts[:0])
	if len(a.own.receipts) == 0 {
		return first
	}
	store := g.store
	if a.local != nil { // The guard's store has then taken no known units.
		store = a.local
	}
	if err := notGivenBack(store.Return(ctx, a.own.receipts)); err != nil {
		return err
	}
	return first
}

// release appends the receipts of an answer whose units go back to the store. A queue keeps its units while a request waits for
// them.
func (a *Answer) release(ctx context.Context, receipts []headgate.Receipt) (_ []headgate.Receipt, first error) {
	for i := range a.Results {
		r := &a.Results[i]
		receipt := r.Decision.Receipt
		if m := r.member; m != nil {
			r.Decision.Receipt, r.member = headgate.Receipt{}, nil // The booking belongs to the queue.
			receipt = m.Receipt
			if err := m.queue.offerSpare(ctx, r.Rule.maxWaiters()); err != nil && first == nil {
				first = err
			}
		}
		if !receipt.Empty() {
			receipts = append(receipts, receipt)
		}
	}
	return receipts, first
}

// mostOffers bounds the slots that a leaving request offers to the store. It leaves at most one
// slot more behind, and the next leaving request continues.
const mostOffers = 4

// offerSpare returns to the store the last slots, if no request waits for them. After the end of ctx they stay for later requests.
func (q *waitQueue) offerSpare(ctx context.Context, most int) error {
	store, ok := q.id.store.(headgate.LastReturner)
	for range mostOffers {
		if !ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return notGivenBack(err)
		}
		slot, clock := q.tail()
		if slot == nil {
			return nil
		}
		returned, err := store.ReturnLast(ctx, &slot.Receipt)
		if err != nil {
			return notGivenBack(err) // The slot may have been returned, so no request may use it.
		}
		if !returned {
			q.queues.keep(q.id, q.Pace(), q.rule, slot, clock, most)
			return nil
		}
	}
	return nil
}

// offer returns a booking to its store. If other bookings follow it, the requests that wait for
// its key get it.
func (g *Guard) offer(ctx context.Context, a *Answer, r *Result) error {
	id, _ := g.queueOf(a, r)
	if store, ok := id.store.(headgate.LastReturner); ok {
		if returned, err := store.ReturnLast(ctx, &r.Decision.Receipt); returned || err != nil {
			r.Decision.Receipt = headgate.Receipt{}
			return notGivenBack(err)
		}
	}
	g.handOn(a, r)
	return nil
}

// handOn leaves a booking to the requests that wait for its key.
func (g *Guard) handOn(a *Answer, r *Result) {
	id, pace := g.queueOf(a, r)
	now := g.state.queues.now()
	slot := &queue.Slot{At: now + r.Decision.RetryAfter, Units: r.cost, Receipt: r.Decision.Receipt}
	r.Decision.Receipt = headgate.Receipt{}
	g.state.queues.keep(id, pace, r.from.places, slot, r.Decision.At-headgate.Instant(now), r.Rule.maxWaiters())
}

func notGivenBack(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("guard: what a request took that is not made stays counted: %w", err)
}

// Waiting gives the number of requests that wait for a rule now.
func (g *Guard) Waiting(ruleName string) int64 {
	if g.now() == nil {
		return 0
	}
	return g.state.waitingFor(ruleName)
}
