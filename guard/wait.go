package guard

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/wheel"
)

// waiter is a request on its way to its departure. It counts for each rule that
// makes it wait from the decision to the departure, whether or not anybody waits:
// so no slot is lost when a front forgets one.
type waiter struct {
	entry wheel.Entry
	done  chan struct{}
	rules []*atomic.Int64
}

func (w *waiter) release() {
	for _, waiting := range w.rules {
		waiting.Add(-1)
	}
}

// depart is called when the departure has come.
func (w *waiter) depart() {
	w.release()
	w.done <- struct{}{} // It has room for one, and fires once.
}

// hold gives the requests that wait their places among those that wait for a rule.
// A rule without a free place refuses. Shadow rules count as if they were enforced
// alone.
func (g *Guard) hold(a *Answer) {
	shadow := false
	for i := range a.Results {
		r := &a.Results[i]
		shadow = shadow || !r.Enforced() && r.Decision.Verdict == headgate.Wait
	}
	if a.Verdict == headgate.Wait {
		g.holdEnforced(a)
	}
	if shadow {
		g.holdShadows(a)
	}
}

func (g *Guard) holdEnforced(a *Answer) {
	w := newWaiter()
	if !a.join(w, 0, len(a.Results), Enforce) {
		w.release()
		a.judge()
		return
	}
	a.waiter = w
	g.state.timers.Start(&w.entry, a.RetryAfter())
}

// holdShadows takes the rules one by one: each waits, or refuses, alone.
func (g *Guard) holdShadows(a *Answer) {
	for i := 0; i < len(a.Results); {
		from, number := i, a.Results[i].Number
		var longest time.Duration
		for ; i < len(a.Results) && a.Results[i].Number == number; i++ {
			if d := &a.Results[i].Decision; d.Verdict == headgate.Wait {
				longest = max(longest, d.RetryAfter)
			}
		}
		if longest == 0 || a.Results[from].Enforced() || a.refusedBy(number) {
			continue
		}
		if w := newWaiter(); a.join(w, from, i, Shadow) {
			a.shadows = append(a.shadows, w)
			g.state.timers.Start(&w.entry, longest)
		} else {
			w.release()
		}
	}
}

func newWaiter() *waiter {
	w := &waiter{done: make(chan struct{}, 1)}
	w.entry.Fire = w.depart
	return w
}

// join counts w among those that wait for each rule of the results from..to that
// makes it wait. It reports false when one of them has no place left; the
// decisions of that rule are then refusals.
func (a *Answer) join(w *waiter, from, to int, mode Mode) bool {
	joined := true
	last := -1
	for i := from; i < to; i++ {
		r := &a.Results[i]
		if r.Rule.Mode != mode || r.Decision.Verdict != headgate.Wait {
			continue
		}
		if r.Number != last {
			last = r.Number
			w.rules = append(w.rules, r.from.waiting)
			if r.from.waiting.Add(1) > int64(r.Rule.maxWaiters()) {
				joined = false
				a.full(i)
			}
		}
	}
	return joined
}

// full turns the waits of a rule, from result i on, into refusals.
func (a *Answer) full(i int) {
	for number := a.Results[i].Number; i < len(a.Results) && a.Results[i].Number == number; i++ {
		if d := &a.Results[i].Decision; d.Verdict == headgate.Wait {
			d.Verdict, d.Reason = headgate.Deny, headgate.TooManyWaiters
		}
	}
	a.denied = true
}

func (r *Rule) maxWaiters() int {
	if r.Exceed.MaxWaiters > 0 {
		return r.Exceed.MaxWaiters
	}
	return DefaultMaxWaiters
}

// Wait holds the request of an answer with the verdict Wait until its departure.
// When ctx ends first, Wait returns what the request took, its share of the capacity
// too, and gives ctx's error.
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
	if !g.state.timers.Stop(&w.entry) {
		<-w.done // The departure came first.
		a.waiter = nil
		return nil
	}
	w.release()
	a.waiter = nil
	// The request is over, and giving back what it took is not.
	if err := g.Cancel(context.WithoutCancel(ctx), a); err != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return ctx.Err()
}

// Cancel returns what the answer took, when its request will not be made: a
// client that went away. It is called before or instead of Wait.
func (g *Guard) Cancel(ctx context.Context, a *Answer) error {
	s := g.now()
	if s == nil {
		return headgate.ErrNotMade
	}
	a.unshare()
	if a.waiter != nil {
		g.leave(a.waiter)
		a.waiter = nil
	}
	for _, w := range a.shadows {
		g.leave(w)
	}
	a.shadows = a.shadows[:0]
	a.receipts = a.receipts[:0]
	for i := range a.Results {
		if r := &a.Results[i].Decision.Receipt; !r.Empty() {
			a.receipts = append(a.receipts, *r)
		}
	}
	if len(a.receipts) == 0 {
		return nil
	}
	if budget := s.config.StoreTimeout; budget > 0 && a.local == nil {
		bounded, cancel := context.WithTimeout(ctx, budget)
		defer cancel()
		ctx = bounded
	}
	return g.giveBack(ctx, a)
}

// leave gives up the places of one that waits, unless its departure has.
func (g *Guard) leave(w *waiter) {
	if g.state.timers.Stop(&w.entry) {
		w.release()
	}
}

// giveBack returns receipts to whom they are of: Local's, if a fallback took, as
// the store has then taken nothing that is known of.
func (g *Guard) giveBack(ctx context.Context, a *Answer) error {
	store := g.store
	if a.local != nil {
		store = a.local
	}
	if err := store.Return(ctx, a.receipts); err != nil {
		return fmt.Errorf("guard: what a request took that is not made stays counted: %w", err)
	}
	return nil
}

// Waiting gives how many requests wait for a rule now.
func (g *Guard) Waiting(ruleName string) int64 {
	if g.now() == nil {
		return 0
	}
	return g.state.waitingFor(ruleName)
}
