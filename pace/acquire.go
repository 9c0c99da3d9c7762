package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
)

// errUnits reports a programming error of the caller.
var errUnits = errors.New("pace: units must be 1 or more")

// errNotMade is returned by the methods of a zero Pacer.
var errNotMade = fmt.Errorf("pace: %w", headgate.ErrNotMade)

// made reports whether New made the Pacer.
func (p *Pacer) made() bool { return p != nil && p.ended != nil }

// Acquire takes a permit for one call. It waits for less than maxWait, in first-come
// order. With a maxWait of 0 or less it does not wait. With [Forever] it waits until ctx
// is done. A wait that cannot succeed fails at once.
//
// The error is a [*TimeoutError] (with the time at which a permit opens),
// [ErrTooManyWaiters], [ErrClosed] or the error of ctx. When a permit is granted the error
// is nil, even if ctx ends at the same moment.
func (p *Pacer) Acquire(ctx context.Context, maxWait time.Duration) error {
	return p.AcquireN(ctx, 1, maxWait)
}

// AcquireN takes n units at once, as [Pacer.Acquire] takes one. It returns [ErrTooLarge]
// if no window ever has n units. Units that are too few for the first waiter are not given
// to later waiters.
func (p *Pacer) AcquireN(ctx context.Context, n int64, maxWait time.Duration) error {
	if !p.made() {
		return errNotMade
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 1 {
		return errUnits
	}
	if p.gate.take(p.clock.now(), n) {
		return nil
	}
	return p.wait(ctx, n, maxWait)
}

// TryAcquire takes a permit if one is open now and no caller waits.
func (p *Pacer) TryAcquire() bool { return p.TryAcquireN(1) }

// TryAcquireN takes n units if they are open now and no caller waits.
func (p *Pacer) TryAcquireN(n int64) bool {
	if n < 1 || !p.made() {
		return false
	}
	if p.gate.take(p.clock.now(), n) {
		return true
	}
	now := p.enter()
	got := p.take(now, n)
	if !got {
		p.turnAway(n, now)
	}
	p.leave(now)
	return got
}

// AcquireFunc takes n units as [Pacer.AcquireN] does, without a waiting goroutine. It
// calls f once, with the wall time at which the units were granted, or with an error. If
// the decision is immediate, it calls f before it returns. To acquire again from within f,
// start another goroutine: otherwise the calls nest without bound.
//
// One goroutine calls the callbacks of all waiters in first-come order, so f must not
// block. A caller that arrives when the queue is empty may be served before earlier
// waiters have been notified.
func (p *Pacer) AcquireFunc(n int64, maxWait time.Duration, f func(at headgate.Instant, err error)) Ticket {
	switch {
	case !p.made():
		f(0, errNotMade)
		return Ticket{}
	case n < 1:
		f(0, errUnits)
		return Ticket{}
	}
	ahead := p.ahead.Load()
	if now := p.clock.now(); p.gate.take(now, n) {
		f(headgate.Instant(now+ahead), nil)
		return Ticket{}
	}
	w, turn, at, err := p.ask(n, maxWait, f)
	if w == nil {
		f(at, err)
		return Ticket{}
	}
	return Ticket{p, w, turn}
}

// Ticket identifies a waiter in the queue. The zero Ticket identifies no waiter.
type Ticket struct {
	pacer *Pacer
	w     *waiter
	turn  uint32
}

// Cancel removes the waiter and reports whether it was still waiting. If it returns true,
// f is not called.
func (t Ticket) Cancel() bool { return t.w != nil && t.pacer.cancel(t.w, t.turn) }

// parked is a waiting goroutine. A sync.Pool keeps unused ones.
type parked struct {
	notified chan error
	tell     func(headgate.Instant, error)
}

func (p *Pacer) park() *parked {
	if g, ok := p.parked.Get().(*parked); ok {
		return g
	}
	g := &parked{notified: make(chan error, 1)}
	g.tell = func(_ headgate.Instant, err error) { g.notified <- err }
	return g
}

// wait waits for n units that were not available at once.
func (p *Pacer) wait(ctx context.Context, n int64, maxWait time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		maxWait = min(maxWait, time.Until(deadline))
	}
	g := p.park()
	defer p.parked.Put(g)
	w, turn, _, err := p.ask(n, maxWait, g.tell)
	if w == nil {
		return err
	}
	select {
	case err = <-g.notified:
		return err
	case <-ctx.Done():
	}
	if p.cancel(w, turn) {
		return ctx.Err()
	}
	return <-g.notified // The request was decided at the same moment.
}

// ask decides on n units at once, or queues a waiter and returns the waiter with its turn.
func (p *Pacer) ask(n int64, maxWait time.Duration, tell func(headgate.Instant, error)) (*waiter, uint32, headgate.Instant, error) {
	now := p.enter()
	if p.take(now, n) {
		at := p.window.at(now)
		p.leave(now)
		return nil, 0, at, nil
	}
	if err := p.refusal(now, n, maxWait); err != nil {
		p.turnAway(n, until(now, maxWait))
		p.leave(now)
		return nil, 0, 0, err
	}
	w, _ := p.waiters.Get().(*waiter)
	if w == nil {
		w = new(waiter)
	}
	w.n, w.since, w.deadline, w.tell = n, now, until(now, maxWait), tell
	p.window.ask(n, p.queue.units)
	p.queue.push(w)
	turn := w.turn
	p.leave(now)
	return w, turn, 0, nil
}

// take takes n units if they are available and no caller waits.
func (p *Pacer) take(now, n int64) bool {
	w := &p.window
	if p.queue.first != nil || now >= p.valid {
		return false
	}
	w.line.Idle(now-w.begin, w.given)
	if !w.fits(now, n) {
		return false
	}
	w.given += n
	return true
}

// until returns the deadline of a wait.
func until(now int64, maxWait time.Duration) int64 {
	if maxWait >= time.Duration(never-now) {
		return never
	}
	return now + int64(max(maxWait, 0))
}

// turnAway counts a refused request, which would have waited until the given time.
func (p *Pacer) turnAway(n, until int64) {
	if p.tooLarge(n) {
		return // A request above the units of any window is no demand.
	}
	w := &p.window
	w.ask(n, p.queue.units)
	w.until = max(w.until, until)
	w.refused = min(w.refused+n, 1<<62)
}

// refusal returns the error of a request that cannot be served at once and cannot wait. It returns
// nil if the request may wait.
func (p *Pacer) refusal(now, n int64, maxWait time.Duration) error {
	if p.closed != nil {
		return p.closed
	}
	if p.tooLarge(n) {
		p.counts.tooLarge++
		return ErrTooLarge
	}
	opens, ok := p.predict(now, p.queue.units+n)
	hopeless := maxWait != Forever && p.planned(now) && (!ok || opens-now >= int64(maxWait))
	if maxWait <= 0 || hopeless {
		p.counts.timedOut++
		return p.timeout(int64(maxWait), opens, ok)
	}
	if p.queue.waiters >= p.config.MaxWaiters {
		p.counts.tooMany++
		return ErrTooManyWaiters
	}
	return nil
}

// planned reports whether the time at which units open can be predicted: there is a plan,
// and it is valid. A rate that may grow is no plan.
func (p *Pacer) planned(now int64) bool {
	_, notified := p.timeline.Last()
	return (notified || p.rate.on && p.rate.Limited) && now < p.valid
}

// tooLarge reports whether no window of a plan has n units.
func (p *Pacer) tooLarge(n int64) bool {
	last, notified := p.timeline.Last() // With a rate, any number of units opens at some time.
	return n > schedule.MaxLimit || notified && n > max(last.Most(), p.window.Plan.Most()) && last.Limit > 0
}

// cancel removes a waiter from the queue. The turn tells the waiter from later uses of the
// same pooled object.
func (p *Pacer) cancel(w *waiter, turn uint32) bool {
	now := p.enter()
	if w.turn != turn {
		p.leave(now)
		return false
	}
	p.queue.remove(w)
	p.counts.givenUp++
	p.counts.left = min(p.counts.left+w.n, 1<<62)
	p.window.until = max(p.window.until, now)
	p.release(w)
	p.leave(now)
	return true
}

// release returns a waiter to the pool.
func (p *Pacer) release(w *waiter) {
	w.next, w.tell, w.err = nil, nil, nil
	p.waiters.Put(w)
}
