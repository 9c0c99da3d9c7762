package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/schedule"
)

// errUnits is a fault of the program that asks.
var errUnits = errors.New("pace: units must be 1 or more")

// errNotMade is what a zero Pacer gives.
var errNotMade = fmt.Errorf("pace: %w", headgate.ErrNotMade)

// made tells a Pacer of New from a zero one.
func (p *Pacer) made() bool { return p != nil && p.ended != nil }

// Acquire takes a permit for one call, and waits for it for less than maxWait, behind
// those who came before. A maxWait of 0 or less does not wait at all, [Forever] waits
// until ctx is done. A wait that cannot succeed fails at once.
//
// The errors are a [*TimeoutError], which says when a permit could be had,
// [ErrTooManyWaiters], [ErrClosed], and that of ctx. With a permit it is nil: also when ctx
// ended in the same moment, but never after.
func (p *Pacer) Acquire(ctx context.Context, maxWait time.Duration) error {
	return p.AcquireN(ctx, 1, maxWait)
}

// AcquireN takes n units at once, as [Pacer.Acquire] takes one. More than a window ever
// has are [ErrTooLarge]; a window that has fewer left than the first who waits
// wants gives them to nobody.
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

// TryAcquire takes a permit if there is one now and nobody waits.
func (p *Pacer) TryAcquire() bool { return p.TryAcquireN(1) }

// TryAcquireN takes n units if they are there now and nobody waits.
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

// AcquireFunc takes n units as [Pacer.AcquireN] does, without a goroutine that waits:
// f is called once, with the wall time at which they were given, or an error. When it
// is decided at once, f is called before AcquireFunc returns: who asks again from within f
// should do so from another goroutine, lest the calls nest without end.
//
// f is called by the goroutine that serves all who wait, in the order in which they came:
// it must not block. Somebody who comes when nobody waits any more may be served, and
// told, while those before are still being told.
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

// Ticket is somebody's place among those who wait. The zero Ticket is nobody's.
type Ticket struct {
	pacer *Pacer
	w     *waiter
	turn  uint32
}

// Cancel gives the place up, and says whether there was still one: then f is not called.
func (t Ticket) Cancel() bool { return t.w != nil && t.pacer.cancel(t.w, t.turn) }

// parked is a goroutine that waits.
type parked struct {
	told chan error
	tell func(headgate.Instant, error)
}

func (p *Pacer) park() *parked {
	if g, ok := p.parked.Get().(*parked); ok {
		return g
	}
	g := &parked{told: make(chan error, 1)}
	g.tell = func(_ headgate.Instant, err error) { g.told <- err }
	return g
}

// wait waits for n units that were not there at once.
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
	case err = <-g.told:
		return err
	case <-ctx.Done():
	}
	if p.cancel(w, turn) {
		return ctx.Err()
	}
	return <-g.told // It was decided in the same moment.
}

// ask decides on n units at once, or gives the waiter to be told later, and its turn.
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

// take takes n units if they are there and nobody waits.
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

// until gives when a wait ends.
func until(now int64, maxWait time.Duration) int64 {
	if maxWait >= time.Duration(never-now) {
		return never
	}
	return now + int64(max(maxWait, 0))
}

// turnAway counts somebody who was not served, and would have waited until a time.
func (p *Pacer) turnAway(n, until int64) {
	if p.tooLarge(n) {
		return // What no window ever has is no demand.
	}
	w := &p.window
	w.ask(n, p.queue.units)
	w.until = max(w.until, until)
	w.refused = min(w.refused+n, 1<<62)
}

// refusal says why somebody who was not served at once cannot wait either.
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

// planned says whether what is known tells when units come: not before there is a plan,
// nor while it is not valid.
func (p *Pacer) planned(now int64) bool {
	_, told := p.timeline.Last()
	return told && now < p.valid
}

// tooLarge says whether no window of a plan has n units.
func (p *Pacer) tooLarge(n int64) bool {
	last, told := p.timeline.Last()
	return n > schedule.MaxLimit || told && n > max(last.Most(), p.window.Plan.Most()) && last.Limit > 0
}

// cancel takes a waiter back that still waits in its turn.
func (p *Pacer) cancel(w *waiter, turn uint32) bool {
	now := p.enter()
	if w.turn != turn {
		p.leave(now)
		return false
	}
	p.queue.remove(w)
	p.counts.givenUp++
	p.window.until = max(p.window.until, now)
	p.release(w)
	p.leave(now)
	return true
}

// release keeps a waiter for the next who waits.
func (p *Pacer) release(w *waiter) {
	w.next, w.tell, w.err = nil, nil, nil
	p.waiters.Put(w)
}
