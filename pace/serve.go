package pace

import (
	"context"
	"time"
)

// decided lists waiters that are decided but not yet notified. They are notified without the lock.
type decided struct{ first, last *waiter }

func (d *decided) add(w *waiter) {
	w.next = nil
	if d.first == nil {
		d.first = w
	} else {
		d.last.next = w
	}
	d.last = w
}

// tellAtOnce bounds how many waiters are served while the lock is held.
const tellAtOnce = 512

// serve grants open units to the waiters in order, and refuses waiters with a passed deadline. The
// caller holds the lock. more reports that serve stopped before the end of its work.
func (p *Pacer) serve(now int64, answered *decided) (more bool) {
	for range tellAtOnce {
		w := p.queue.first
		if w == nil {
			return false
		}
		switch late := p.queue.soonest(); {
		case now < p.valid && p.window.fits(now, w.n) && p.window.opens(p.window.given+w.n) < w.deadline:
			// Units that opened before the deadline are granted even if the timer is late.
			p.give(w, now, answered)
		case late != nil && late.deadline <= now:
			opens, ok := p.predict(now, late.n)
			p.refuse(late, p.timeout(late.deadline-late.since, opens, ok), answered)
			p.counts.timedOut++
		case p.tooLarge(w.n):
			p.refuse(w, ErrTooLarge, answered)
			p.counts.tooLarge++
		default:
			return false
		}
	}
	return true
}

// give grants units to the first waiter.
func (p *Pacer) give(w *waiter, now int64, answered *decided) {
	p.queue.remove(w)
	p.window.given += w.n
	p.window.look(now)
	w.at, w.err = p.window.at(now), nil
	p.counts.served(time.Duration(now-w.since), w.n)
	answered.add(w)
}

func (p *Pacer) refuse(w *waiter, err error, answered *decided) {
	p.queue.remove(w)
	p.window.refused = min(p.window.refused+w.n, 1<<62)
	p.window.until = max(p.window.until, w.deadline)
	w.err = err
	answered.add(w)
}

// retime checks all waiters after a change of the plan, and refuses waiters at once that can no
// longer be served in time. retime costs about 50 ns for each waiter.
func (p *Pacer) retime(now int64) {
	ahead := int64(0)
	for w := p.queue.first; w != nil; {
		next := w.next
		switch opens, ok := p.predict(now, ahead+w.n); {
		case p.tooLarge(w.n):
			p.refuse(w, ErrTooLarge, &p.refused)
			p.counts.tooLarge++
		case w.deadline != never && p.planned(now) && (!ok || opens >= w.deadline):
			p.refuse(w, p.timeout(w.deadline-w.since, opens, ok), &p.refused)
			p.counts.timedOut++
		default:
			ahead += w.n
		}
		w = next
	}
}

// run serves the waiters until the pacer is closed. A single goroutine runs it, so that
// waiters are notified in first-come order and never concurrently.
func (p *Pacer) run(ctx context.Context, ended func()) {
	over := false
	defer func() {
		if !over { // A callback has ended its goroutine: another goes on where it was.
			go p.run(ctx, ended)
		}
	}()
	p.tell()
	for {
		select {
		case <-p.timer.C:
			for p.wake() {
			}
		case <-ctx.Done():
			p.end(ErrClosed)
			p.wake()
			over = true
			ended()
			return
		}
	}
}

// wake serves waiters and reports whether work is left.
func (p *Pacer) wake() (more bool) {
	now := p.enter()
	p.armed, p.woken = never, now
	p.telling = p.refused
	p.refused = decided{}
	more = p.serve(now, &p.telling)
	p.leave(now)
	p.tell()
	return more
}

// enter takes the lock and then reads the time, so that no caller goes back to a previous
// window.
func (p *Pacer) enter() (now int64) {
	p.mu.Lock()
	now = p.clock.now()
	p.advance(now)
	return now
}

// leave arms the timer for the waiters, or opens the gate without waiters, and releases the lock.
func (p *Pacer) leave(now int64) {
	p.arm(now)
	p.open(now)
	p.mu.Unlock()
}

// tell notifies the decided waiters and returns them to the pool.
func (p *Pacer) tell() {
	for w := p.telling.first; w != nil; w = p.telling.first {
		p.telling.first = w.next
		tell, at, err := w.tell, w.at, w.err
		p.release(w)
		tell(at, err)
	}
}

// wakeEvery is the shortest interval between two checks of the waiters. Permits that open
// in between are granted together.
const wakeEvery = int64(500 * time.Microsecond)

// arm sets the timer for the next time at which a waiter must be notified.
func (p *Pacer) arm(now int64) {
	next := p.due(now)
	if next < p.armed {
		p.armed = next
		p.timer.Reset(time.Duration(min(next-now, int64(time.Hour))))
	}
}

func (p *Pacer) due(now int64) int64 {
	w := p.queue.first
	switch {
	case p.refused.first != nil:
		return now
	case w == nil:
		return never
	}
	next := p.window.end
	if left := p.window.left(); w.n <= left { // The last are not waited for any longer than they take to open.
		next = max(p.window.opens(p.window.given+w.n), min(p.woken+wakeEvery, p.window.opens(p.window.given+left)))
	}
	if now >= p.valid {
		next = never
	}
	next = max(next, now)
	if late := p.queue.soonest(); late != nil {
		next = min(next, max(late.deadline, now))
	}
	return next
}

// timeout returns the error of a request that could wait for maxWait.
func (p *Pacer) timeout(maxWait, opens int64, ok bool) error {
	e := &TimeoutError{Provider: p.config.Provider, MaxWait: time.Duration(maxWait), Cause: p.cause()}
	if ok {
		e.Opens = p.window.at(opens).Time()
	}
	return e
}

// cause returns the reason why no units are granted, if it is not the limit.
func (p *Pacer) cause() string {
	now := p.clock.now()
	switch _, notified := p.timeline.Last(); {
	case !notified && !p.rate.on:
		return "no plan yet: the source has not answered: see whether it can be reached"
	case now >= p.valid:
		return "its source is lost, and what it told is no longer valid: see whether it can be reached"
	case p.brakes.percent(now) == 0:
		return "it asked to be left alone"
	case p.window.length() == 0:
		return "its first plan has not begun"
	case p.rate.on && p.rate.Amount == 0:
		return "its rate is 0"
	case p.window.Plan.Limit == 0:
		return "its limit is 0"
	}
	return ""
}
