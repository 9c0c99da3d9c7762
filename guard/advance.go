package guard

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// advance continues the request of a turn if its stage has resumed it.
func (t *Ticket) advance(turn uint64) {
	t.mu.Lock()
	if t.turn != turn || t.state != ticketHeld || !t.resumed {
		t.mu.Unlock()
		return
	}
	refused := t.takeUp()
	t.mu.Unlock()
	t.tell()
	t.proceed(refused)
}

// tell reads the time for the next calls of stages.
func (t *Ticket) tell() time.Duration {
	t.now = t.guard.state.queues.now()
	return t.now
}

// proceed enters the stages in order, until a stage holds or refuses the request, or no stage is
// left. The caller has set busy. refused: the stage that held the request has refused it.
func (t *Ticket) proceed(refused bool) {
	done := false
	defer func() {
		if !done {
			t.panicked()
		}
	}()
	t.enterStages(refused)
	done = true
}

// panicked refuses a request after a panic of the Observer. Without it, a later Done would wait
// for ever.
func (t *Ticket) panicked() {
	t.mu.Lock()
	busy := t.busy
	t.mu.Unlock()
	if busy {
		t.refuse(t.at)
	}
}

func (t *Ticket) enterStages(refused bool) {
	if refused {
		t.record(t.at, t.next)
		t.refuse(t.at)
		return
	}
	for {
		p, more := t.nextPass()
		if !more {
			return
		}
		d := t.enter(p)
		switch {
		case t.set.stages.rules[t.at].Mode != Enforce:
		case d.Verdict == headgate.Wait && t.late(&d):
			d.Verdict, d.Reason = headgate.Deny, headgate.WaitTooLong
			t.record(t.at, d)
			t.refuse(t.at)
			return
		case d.Verdict == headgate.Deny:
			t.record(t.at, d)
			t.refuse(t.at - 1)
			return
		case d.Verdict == headgate.Wait:
			t.record(t.at, d)
			t.waitForStage()
			return
		}
		t.record(t.at, d)
		t.step()
	}
}

// takeUp begins to enter stages after a Resume. The caller holds mu, from the check of resumed
// on, so that no other request of the Ticket comes in between.
func (t *Ticket) takeUp() (refused bool) {
	t.state, t.busy = ticketEntering, true
	if t.next.Verdict == headgate.Deny {
		return true // resumed stays true, so a second Resume has no effect.
	}
	t.resumed = false
	t.at++
	return false
}

// step moves to the next stage.
func (t *Ticket) step() {
	t.mu.Lock()
	t.at++
	t.resumed = false // A stage in Shadow may have resumed the request.
	t.mu.Unlock()
}

// nextPass gives the Pass of the next stage. It reports false when no stage is left or Done was
// called; the request is then settled.
func (t *Ticket) nextPass() (*Pass, bool) {
	t.mu.Lock()
	s := ticketAdmitted
	switch {
	case t.leaving:
		s = ticketStopped
	case t.at < len(t.passes):
		p := &t.passes[t.at]
		*p = Pass{Request: t.request, handle: Handle{t, t.turn, t.at}, entered: t.now}
		t.mu.Unlock()
		return p, true
	}
	t.mu.Unlock()
	if s == ticketAdmitted {
		t.forwards()
	}
	t.settled(s)
	return nil, false
}

// forwards tells the stages that the request will be forwarded.
func (t *Ticket) forwards() {
	for i := range t.set.stages.calls {
		if stage := t.set.stages.calls[i].forward; stage != nil && t.passes[i].handle.ticket != nil {
			stage.Forward(&t.passes[i])
		}
	}
}

// enter calls Enter of a stage. If the stage panics, enter refuses the request before the panic
// continues.
func (t *Ticket) enter(p *Pass) (d headgate.Decision) {
	d = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.StoreUnavailable}
	decided := false
	defer func() {
		p.Request = nil
		if d.Verdict == headgate.Deny {
			p.handle.ticket = nil // A stage that refuses is not left later.
		}
		if !decided {
			t.record(t.at, d)
			t.refuse(t.at - 1)
		}
	}()
	d = t.set.stages.all[p.handle.stage].Enter(p)
	decided = true
	return d
}

// late reports whether a stage would hold the request beyond its caller's deadline.
func (t *Ticket) late(d *headgate.Decision) bool {
	return d.RetryAfter > 0 && !t.deadline.IsZero() && t.deadline.Sub(machineTime()) <= d.RetryAfter
}

// record adds the decision of a stage to the Answer.
func (t *Ticket) record(stage int, d headgate.Decision) {
	rule := &t.set.stages.rules[stage]
	r := t.Answer.nextResult()
	*r = Result{
		Rule: rule, Policy: rule.Name, Stage: rule.Name, Decision: d, op: opDecided, window: &t.set.stages.window,
		Limit: headgate.Limit{Count: d.Limit},
	}
	if observer, ok := t.set.config.Observer.(StageObserver); ok && t.observed {
		observer.ObserveStage(r)
	}
}

// waitForStage marks the request as held by its current stage.
func (t *Ticket) waitForStage() {
	t.mu.Lock()
	t.Answer.Verdict = headgate.Wait
	t.state, t.busy = ticketHeld, false
	t.idle.Broadcast()
	goesOn, refused := t.resumed && t.notify != nil && !t.leaving, false
	switch {
	case goesOn:
		refused = t.takeUp()
	case t.resumed && t.wake != nil:
		t.rouse()
	}
	t.mu.Unlock()
	if goesOn {
		t.tell()
		t.proceed(refused)
	}
}

// refuse ends the admission. It leaves the stages up to last, and returns the units of fair share
// and the rules. The last Result has the reason.
func (t *Ticket) refuse(last int) {
	t.mu.Lock()
	t.resumed = true // A later Resume of this request has no effect.
	t.mu.Unlock()
	a := t.Answer
	a.Verdict, a.closest = headgate.Deny, len(a.Results)-1
	defer t.settled(ticketRefused) // This also runs when a stage panics.
	defer t.guard.abandon(t.set, a)
	defer t.dropEnding()
	t.leaveFrom(last, &Outcome{End: Refused, Duration: t.lasted()})
}

// settled ends the entering of stages.
func (t *Ticket) settled(s ticketState) {
	t.mu.Lock()
	notify := t.notify
	t.state, t.busy, t.notify = s, false, nil
	t.idle.Broadcast()
	t.mu.Unlock()
	switch {
	case notify != nil && s == ticketAdmitted:
		notify(headgate.Allow)
	case notify != nil:
		notify(headgate.Deny)
	}
}

// resume is Handle.Resume.
func (t *Ticket) resume(h Handle, d headgate.Decision) bool {
	t.mu.Lock()
	if t.turn != h.turn || t.at != h.stage || t.resumed || t.state != ticketHeld && t.state != ticketEntering {
		t.mu.Unlock()
		return false
	}
	t.resumed, t.next = true, d
	state, goesOn := t.guard.state, t.state == ticketHeld && t.notify != nil
	if t.state == ticketHeld && t.wake != nil && !goesOn {
		t.rouse()
	}
	t.mu.Unlock()
	if goesOn {
		state.resumptions.add(t, h.turn)
	}
	return true
}

// leaveHeld ends the wait of a request whose caller left. It reports false when the stage has
// already resumed the request.
func (t *Ticket) leaveHeld() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != ticketHeld || t.resumed {
		return false
	}
	t.state = ticketRefused
	return true
}

// giveUp leaves the stages for a caller that left, and returns the units of the request.
func (t *Ticket) giveUp(ctx context.Context) (err error) {
	defer func() { // This also runs when a stage panics.
		t.dropEnding()
		err = ctx.Err()
		if kept := t.guard.Cancel(context.WithoutCancel(ctx), t.Answer); kept != nil {
			err = errors.Join(err, kept)
		}
	}()
	t.leaveFrom(t.at, &Outcome{End: ClientLeft, Duration: t.lasted()})
	return nil
}

// end is Handle.End.
func (t *Ticket) end(h Handle, cause error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.turn != h.turn || t.state == ticketEnded || !t.ends:
		return false
	case t.stop != nil:
		t.stopped = t.stop(cause) || t.stopped
	case !t.stopped:
		t.stopped, t.cause = true, cause // Context ends the context when it is made.
	}
	return true
}
