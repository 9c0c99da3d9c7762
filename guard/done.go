package guard

import (
	"context"
	"time"
)

// End is how a request ended.
type End uint8

const (
	// Answered: the whole answer was sent.
	Answered End = iota
	// Refused: the request was not forwarded.
	Refused
	// Failed: the service gave no answer, or broke it off. An answer of the service is
	// Answered, whatever its status.
	Failed
	// ClientLeft: the client went away, or its deadline passed, before the end.
	ClientLeft
	// Panicked: the handler panicked.
	Panicked
	// Stopped: a stage ended the request by Handle.End, before its answer was complete. Done
	// says so where its caller says ClientLeft or Failed.
	Stopped
	// BrokenRequest: the client sent a body that stopped, ended early or was malformed,
	// before the service answered.
	BrokenRequest
)

// endNames holds the words of logs and metrics, in the order of the constants.
var endNames = [...]string{"answered", "refused", "failed", "client_left", "panicked", "stopped", "broken_request"}

// String gives the word of logs and metrics.
func (e End) String() string { return endNames[min(int(e), len(endNames)-1)] }

// Outcome is how a request ended, as its front knows it.
type Outcome struct {
	End End
	// Status is that of HTTP, or the code of gRPC where GRPC is set; 0 of HTTP is unknown.
	Status int
	GRPC   bool
	// Duration is the time since the rules decided, waits included: until Done, or until the
	// refusal for a stage that is left because a stage refused the request or its client
	// left while it waited.
	Duration time.Duration
	// Header looks up a header or trailer of the answer by a name of Facts.Answer, during
	// Leave; nil has none.
	Header func(name string) (value string, ok bool)
}

// Done ends a request, once: further calls do nothing. The stages that it entered are left
// in reverse order. A request that still waits leaves its place, and what it took is
// returned: to a store in memory at once, and to a shared store by one goroutine behind
// Done, whose backlog Guard.Drain empties.
func (t *Ticket) Done(o Outcome) {
	t.mu.Lock()
	turn := t.turn
	if t.state != ticketEnded {
		t.leaving, t.notify = true, nil
	}
	for t.busy && t.turn == turn {
		t.idle.Wait()
	}
	if t.state == ticketEnded || t.turn != turn { // Another Done was first.
		t.mu.Unlock()
		return
	}
	state, at := t.state, t.at
	if t.stopped && (o.End == ClientLeft || o.End == Failed) {
		o.End = Stopped
	}
	t.state = ticketEnded
	t.turn++
	t.mu.Unlock()
	switch {
	case len(t.set.stages.all) == 0:
		if state == ticketDeparts {
			t.guard.abandon(t.set, t.Answer)
		}
		t.set, t.Answer = nil, nil
	case state == ticketDeparts:
		t.finish(-1, true, &o)
	case state == ticketHeld:
		t.finish(at, true, &o)
	case state == ticketStopped:
		t.finish(at-1, true, &o)
	case state == ticketAdmitted:
		t.finish(at-1, false, &o)
	default: // Everything was left at the refusal.
		t.finish(-1, false, &o)
	}
}

// lasted gives how long the request has taken since the rules decided.
func (t *Ticket) lasted() time.Duration { return t.guard.state.queues.now() - t.since }

// finish leaves the stages up to last, and, if the request was not made, returns what
// fair share and the rules counted. All of it is done though a stage panics.
func (t *Ticket) finish(last int, unmade bool, o *Outcome) {
	o.Duration = t.lasted()
	defer t.forget()
	defer t.conclude(unmade, o)
	t.leaveFrom(last, o)
}

// conclude returns what a request counted that was not made, and reports the end.
func (t *Ticket) conclude(unmade bool, o *Outcome) {
	if unmade {
		t.guard.abandon(t.set, t.Answer)
	}
	if told, ok := t.set.config.Observer.(StageObserver); ok {
		told.ObserveEnd(o)
	}
}

// forget ends the context, and lets go of the request.
func (t *Ticket) forget() {
	if t.stop != nil {
		t.stop(context.Canceled)
	}
	clear(t.passes)
	clear(t.headers)
	t.stop, t.cause, t.headers = nil, nil, t.headers[:0]
	t.set, t.Answer, t.request = nil, nil, nil
}

// leaveFrom leaves stage last and those before it, as far as they were entered. When one of
// them panics, the panic goes on after the others.
func (t *Ticket) leaveFrom(last int, o *Outcome) {
	i := last
	defer func() {
		if i >= 0 {
			t.leaveFrom(i-1, o)
		}
	}()
	for ; i >= 0; i-- {
		if p := &t.passes[i]; p.handle.ticket != nil {
			t.set.stages.all[i].Leave(p, o)
			p.handle.ticket = nil
		}
	}
}
