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
	// Failed: the service gave no answer, or ended it early. A complete answer is Answered,
	// whatever its status.
	Failed
	// ClientLeft: the client closed its request, or its deadline passed, before the end.
	ClientLeft
	// Panicked: the handler panicked.
	Panicked
	// Stopped: a stage ended the request by Handle.End, before its answer was complete. Done uses
	// Stopped where its caller says ClientLeft or Failed.
	Stopped
	// BrokenRequest: the client sent a body that stopped, ended early or was malformed, before
	// the service answered.
	BrokenRequest
)

// endNames has the words of logs and metrics, in the order of the constants.
var endNames = [...]string{"answered", "refused", "failed", "client_left", "panicked", "stopped", "broken_request"}

// String gives the word of logs and metrics.
func (e End) String() string { return endNames[min(int(e), len(endNames)-1)] }

// Outcome is how a request ended, as its front knows it.
type Outcome struct {
	End End
	// Status is the HTTP status, or the gRPC code if GRPC is set. An HTTP status of 0 is unknown.
	Status int
	GRPC   bool
	// Duration is the time since the rules decided, waits included. It ends with Done. For a stage
	// that is left early, it ends when a stage refused the request or its client left.
	Duration time.Duration
	// Received and Sent are the bytes of bodies that have passed, without heads: from the client, and to the client. A front sets
	// them if Ticket.CountsBytes.
	Received, Sent int64
	// Header looks up a header or trailer of the answer, by a name of Facts.Answer, during Leave.
	// Several lines of one name are one value, separated by commas. It is nil if there are none.
	Header func(name string) (value string, ok bool)

	scan *Scan // what was read of the answer's body; nil if no rule settles by it
}

// Done ends a request, once. Further calls do nothing. Done leaves the entered stages in reverse
// order. A waiting request leaves its place, and its units are returned. A store in memory gets
// them at once; for a shared store, a goroutine returns them after Done. Guard.Drain waits for
// that goroutine.
func (t *Ticket) Done(o Outcome) {
	t.mu.Lock()
	turn := t.turn
	if t.state != ticketEnded {
		t.leaving, t.notify = true, nil
	}
	for t.busy && t.turn == turn {
		t.idle.Wait()
	}
	if t.state == ticketEnded || t.turn != turn { // Another Done came first.
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
	t.outcome = o // Stages get a pointer, which must not cost an allocation.
	switch {
	case !t.lives():
		if state == ticketDeparts {
			t.guard.abandon(t.set, t.Answer)
		}
		t.set, t.Answer, t.inner, t.outcome = nil, nil, nil, Outcome{}
	case state == ticketDeparts:
		t.finish(-1, true, &t.outcome)
	case state == ticketHeld:
		t.finish(at, true, &t.outcome)
	case state == ticketStopped:
		t.finish(at-1, true, &t.outcome)
	case state == ticketAdmitted:
		t.finish(at-1, false, &t.outcome)
	default: // The refusal has left all stages.
		t.finish(-1, false, &t.outcome)
	}
}

// lasted gives how long the request has taken since the rules decided.
func (t *Ticket) lasted() time.Duration { return t.tell() - t.since }

// finish leaves the stages up to last. If the request was not made, finish returns the units of
// fair share and the rules. All steps run although a stage panics.
func (t *Ticket) finish(last int, unmade bool, o *Outcome) {
	o.Duration = t.lasted()
	defer t.forget()
	defer t.conclude(unmade, o)
	defer t.endRules(unmade, o)
	t.leaveFrom(last, o)
}

// conclude returns the units of a request that was not made, and reports the end.
func (t *Ticket) conclude(unmade bool, o *Outcome) {
	if unmade {
		t.guard.abandon(t.set, t.Answer)
	}
	if observer, ok := t.set.config.Observer.(StageObserver); ok {
		observer.ObserveEnd(o)
	}
}

// forget ends the context, and drops the references to the request.
func (t *Ticket) forget() {
	if t.stop != nil {
		t.stop(context.Canceled)
	}
	clear(t.passes)
	clear(t.headers)
	t.stop, t.cause, t.inner, t.headers = nil, nil, nil, t.headers[:0]
	t.set, t.Answer, t.request, t.outcome, t.ending = nil, nil, nil, Outcome{}, nil
}

// leaveFrom leaves the entered stages from last down to the first. If a stage panics, the other
// stages are left before the panic continues.
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
