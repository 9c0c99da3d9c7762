package guard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// Ticket is one request on its way through a guard, from Admit to Done:
//
//	Admit     fair share, rules and stages decide; the verdict is Allow, Wait or Deny
//	Wait      holds a request with the verdict Wait until it may go or is refused
//	Forward   the request goes to its handler; the Ticket keeps only what Done needs
//	Done      the request has ended; every stage is left, exactly once
//
// A Ticket may be reused after Done. One goroutine at a time may call Admit, Wait, Forward and
// Done. The zero Ticket is ready. A Ticket must not be copied.
type Ticket struct {
	// Answer is the decision. The caller sets Answer before Admit, and may reuse it for another
	// request after Forward.
	Answer *Answer

	guard    *Guard
	set      *set
	request  *headgate.Request // during Admit and Wait
	deadline time.Time         // of Admit's context; zero without a deadline
	since    time.Duration     // the time of Admit, by the clock of the queues
	now      time.Duration     // the time of the current call of a stage, by that clock
	observed bool              // the Observer has got the Answer
	exempt   bool              // Config.Exempt: no stage is entered
	headers  []Header
	passes   []Pass
	outcome  Outcome // during Done
	ending   *ending // what the rules need at the end; nil if nothing

	// mu guards the fields below. It is held for a few steps, never during a call of a stage.
	mu      sync.Mutex
	turn    uint64 // the number of the request, so that a Handle of an earlier request does nothing
	at      int    // the current stage; the request has entered those before
	state   ticketState
	resumed bool // the current stage has resumed the request, with next
	busy    bool // a goroutine is entering stages
	leaving bool // Done waits for that goroutine, which then enters no further stage
	stopped bool // a stage has ended the context, or will when there is a context
	ends    bool // a stage may end the context
	// receiving says that a read of the body waits for the client.
	receiving bool
	next      headgate.Decision
	wake      chan struct{}          // has capacity one
	notify    func(headgate.Verdict) // the function of WaitFunc
	idle      sync.Cond              // signals the end of busy to Done
	cause     error                  // of an End before there was a context
	stop      func(cause error) bool // ends the context; reports false when it had ended

	// inner is the context of the handler, from Context to Done. The goroutine of Context, Answers and Done uses it.
	inner context.Context //nolint:containedctx // because Answers compares its end with the begin of the answer.
}

// ticketState is how far a request has come.
type ticketState uint8

const (
	ticketEnded    ticketState = iota // before Admit, and after Done
	ticketEntering                    // a goroutine is entering stages
	ticketStopped                     // Done came in between: the request has entered the stages before at
	ticketDeparts                     // waits for the departure that a rule booked
	ticketHeld                        // waits for the stage at
	ticketAdmitted
	ticketRefused
)

// Admit takes a request through fair share, the rules and the stages. Admit does not wait. The
// verdict is Allow, Deny or Wait; after Wait the caller calls Ticket.Wait or WaitFunc. A
// refusal returns the units of earlier steps. A wait beyond the deadline of ctx is refused.
// The errors are those of Decide. After an error, Done is not needed.
//
// Only with Config.Independent do the rules count a request that fair share refuses. No stage
// is entered then.
func (g *Guard) Admit(ctx context.Context, req *headgate.Request, t *Ticket) error {
	a := t.Answer
	if a == nil {
		t.state, t.set = ticketEnded, nil
		return errNoAnswer
	}
	s := g.decide(ctx, req, a, true)
	if a.Error != nil {
		t.state, t.set = ticketEnded, nil
		return a.Error
	}
	t.guard, t.set, t.exempt = g, s, a.Exempt
	if a.Verdict == headgate.Wait {
		g.refuseLate(ctx, a)
	}
	if a.ends != nil && a.Verdict != headgate.Deny {
		t.startEnding(ctx)
	}
	if !t.lives() {
		if t.state, t.headers = stateAfter(a.Verdict), t.headers[:0]; a.Verdict == headgate.Wait {
			t.begin(a.Verdict)
		}
		s.observe(req, a)
		return nil
	}
	t.request, t.observed = req, false
	t.deadline, _ = ctx.Deadline()
	t.begin(a.Verdict)
	if a.Verdict == headgate.Allow {
		t.proceed(false)
	}
	s.observe(req, a)
	t.observed = true
	return nil
}

// lives reports whether Done has work to do for an admitted request.
func (t *Ticket) lives() bool { return len(t.set.stages.all) > 0 && !t.exempt || t.ending != nil }

// errNoAnswer is the error of Admit for a Ticket without an Answer.
var errNoAnswer = errors.New("guard: the Ticket has no Answer: set Ticket.Answer before each Admit")

// stateAfter gives the state of a request after the rules, in a guard without stages.
func stateAfter(v headgate.Verdict) ticketState {
	switch v {
	case headgate.Allow:
		return ticketAdmitted
	case headgate.Wait:
		return ticketDeparts
	default:
		return ticketRefused
	}
}

// begin prepares the ticket for a new request.
func (t *Ticket) begin(v headgate.Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn++
	t.idle.L, t.leaving, t.busy, t.stopped = &t.mu, false, false, false
	t.ends, t.receiving = t.set.stages.facts.Ends, false
	t.since = t.tell()
	t.at, t.resumed, t.headers = 0, false, t.headers[:0]
	if n := len(t.set.stages.all); cap(t.passes) < n {
		t.passes = make([]Pass, n)
	}
	t.passes = t.passes[:len(t.set.stages.all)]
	select {
	case <-t.wake: // A wake-up of the previous request.
	default:
	}
	if t.state = stateAfter(v); v == headgate.Allow {
		t.state, t.busy = ticketEntering, true
	}
}

// refuseLate refuses a wait that ends after the caller's deadline. Other requests get its place.
func (g *Guard) refuseLate(ctx context.Context, a *Answer) {
	deadline, bounded := ctx.Deadline()
	if !bounded || deadline.Sub(machineTime()) > a.RetryAfter() {
		return
	}
	late := &a.Closest().Decision
	a.Verdict, late.Verdict, late.Reason = headgate.Deny, headgate.Deny, headgate.WaitTooLong
	a.StoreError = errors.Join(a.StoreError, g.Cancel(context.WithoutCancel(ctx), a))
}

// Wait holds a request with the verdict Wait. It gives Allow when the request may go, and Deny
// when a later stage refuses it: the Answer gives the reason. If ctx ends first, Wait gives
// the place to the next request and returns the units of the request. The error is then that
// of ctx, joined with the error of a failed return. Call Done in every case.
func (t *Ticket) Wait(ctx context.Context) (headgate.Verdict, error) {
	if t.set == nil {
		return headgate.Deny, headgate.ErrNotMade
	}
	if t.state == ticketDeparts {
		if err := t.guard.Wait(ctx, t.Answer); err != nil {
			t.mu.Lock()
			t.state = ticketRefused // All units are returned.
			t.mu.Unlock()
			t.dropEnding()
			return headgate.Deny, err
		}
		if !t.lives() {
			t.state = ticketAdmitted
			return headgate.Allow, nil
		}
		t.mu.Lock()
		t.state, t.busy = ticketEntering, true
		t.mu.Unlock()
		t.tell()
		t.proceed(false)
	}
	for t.held() {
		select {
		case <-t.wake:
			t.advance(t.turn)
		case <-ctx.Done():
			if t.leaveHeld() { // The stage resumed the request first.
				return headgate.Deny, t.giveUp(ctx)
			}
		}
	}
	return t.verdict(), nil
}

// held reports whether a stage holds the request, and prepares the channel that wakes it.
func (t *Ticket) held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != ticketHeld {
		return false
	}
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
	if t.resumed {
		t.rouse()
	}
	return true
}

// rouse wakes the goroutine in Wait. The caller holds mu.
func (t *Ticket) rouse() {
	select {
	case t.wake <- struct{}{}:
	default: // The goroutine is awake already.
	}
}

// verdict gives the verdict of a request that no longer waits.
func (t *Ticket) verdict() headgate.Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == ticketAdmitted {
		return headgate.Allow
	}
	return headgate.Deny
}

// WaitFunc is Wait without a goroutine. It calls f when the request may go or is refused. The call
// is on this goroutine or on the one that decides, so f must not block. To end the wait early,
// call Done; f is then not called.
func (t *Ticket) WaitFunc(f func(headgate.Verdict)) {
	if t.set == nil {
		f(headgate.Deny)
		return
	}
	t.mu.Lock()
	state, again, turn := t.state, t.state == ticketHeld && t.resumed, t.turn
	if state == ticketDeparts || state == ticketHeld {
		t.notify = f
	}
	t.mu.Unlock()
	switch {
	case state == ticketDeparts:
		departed := func() { t.departed(turn) }
		if !t.guard.state.queues.whenGone(t.Answer.waiter, departed) {
			departed()
		}
	case again:
		t.advance(turn)
	case state != ticketHeld:
		f(t.verdict())
	}
}

// departed continues after the departure that the rules booked, for WaitFunc.
func (t *Ticket) departed(turn uint64) {
	t.mu.Lock()
	if t.state != ticketDeparts || t.turn != turn {
		t.mu.Unlock()
		return // The request has left meanwhile.
	}
	t.Answer.waiter = nil
	t.state, t.busy = ticketEntering, true
	t.mu.Unlock()
	t.tell()
	t.proceed(false)
}

// Forward says that the request goes on to its handler. The Ticket releases the Answer and the
// request. Forward reports whether Done has work to do. If not, the caller may drop the
// Ticket before the request ends.
func (t *Ticket) Forward() (lives bool) {
	if t.ending != nil && t.Answer != nil {
		t.ending.collect(t)
	}
	t.Answer, t.request = nil, nil
	if t.set == nil || !t.lives() {
		t.state, t.set = ticketEnded, nil
		return false
	}
	return true
}

// Facts gives what the stages of the request must know, and what they may do.
func (t *Ticket) Facts() Facts {
	if t.set == nil {
		return Facts{}
	}
	return t.set.stages.facts
}

// Headers lists the headers that stages add to the forwarded request. The list is valid until
// Forward.
func (t *Ticket) Headers() []Header { return t.headers }

// Marks is Guard.Marks of the configuration that decided the request. The list is valid until
// Forward.
func (t *Ticket) Marks() []string {
	if t.set == nil {
		return nil
	}
	return t.set.marks
}

// Context gives the context for the handler of an admitted request. A stage can end it if
// Facts.Ends or Pass.Ends says so; otherwise it is ctx itself. Done ends it.
func (t *Ticket) Context(ctx context.Context) context.Context {
	if t.set == nil {
		return ctx
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inner = ctx; !t.ends {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t.inner = ctx
	t.stop = func(cause error) bool {
		first := ctx.Err() == nil
		cancel(cause)
		return first
	}
	if t.stopped {
		t.stop(t.cause)
	}
	return ctx
}

// Stopped reports whether a stage ended the context of the request, by Handle.End and before
// the client left. The result is valid until Done.
func (t *Ticket) Stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// Receiving says whether the request waits for its client: call it with true before each read of the body, and with false
// when the read returns. A body that is not being read keeps no request waiting, whether it is whole or not.
// Any goroutine may call Receiving.
func (t *Ticket) Receiving(is bool) {
	t.mu.Lock()
	t.receiving = is
	t.mu.Unlock()
}

// Answers tells the stages that the answer begins, with its HTTP status, or 0 for gRPC. Call Answers at most once,
// after Forward and before Done, and never at the same time as Done. An answer that begins after the end of Context's context
// is not told: it says that the client has left, or that a stage has ended the request.
func (t *Ticket) Answers(status int) {
	if t.set == nil || t.inner != nil && t.inner.Err() != nil {
		return
	}
	t.tell()
	for i := range t.set.stages.calls {
		stage := t.set.stages.calls[i].answers
		if stage != nil && t.passes[i].handle.ticket != nil { // A stage in Shadow may have refused the request.
			stage.Answers(&t.passes[i], status)
		}
	}
}

// Stream tells the stages that the request has become a stream. Call Stream at most once, after
// Forward and before Done, and never at the same time as Done.
func (t *Ticket) Stream() {
	if t.set == nil {
		return
	}
	t.tell()
	for i := range t.set.stages.calls {
		stage := t.set.stages.calls[i].stream
		if stage != nil && t.passes[i].handle.ticket != nil { // A stage in Shadow may have refused the request.
			stage.Stream(&t.passes[i])
		}
	}
}
