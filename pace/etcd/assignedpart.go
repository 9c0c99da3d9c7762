package etcd

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// assignedPart is the part that an instance was assigned, and what may follow. It keeps the safety
// guarantee of package etcd: see the package comment. It belongs to one goroutine.
type assignedPart struct {
	to      pace.Receiver
	id      string
	onLoss  OnLoss
	holdFor time.Duration

	known mark  // the newest known write of the plan, valid or not
	plan  *plan // the newest valid plan
	at    int64 // its reported revision
	// lapsed: a plan may have been missed that others use.
	lapsed     bool
	registered bool

	in       bool // the newest plan has a part for this instance
	entered  bool // the part was assigned, and may be used
	notified bool // something was reported
	last     headgate.Instant
	// A muted instance uses nothing until the wall time opens; 0 is unknown.
	muted bool
	opens headgate.Instant
	until time.Time // until when it may use its part
	said  time.Time // the value of until that the receiver has

	raised   int64 // added to etcd's revisions, so that they grow
	revision int64 // the last reported revision
}

// moment is a time by both clocks, and the bounds of the other instances.
type moment struct {
	mono   time.Time
	wall   headgate.Instant
	settle time.Duration // the longest time until all others know a plan or have stopped
	valid  time.Duration // the time that the others assume
}

// begin reports that nothing may be used yet.
func (s *assignedPart) begin(now moment) {
	s.said, s.until = now.mono, now.mono
	s.to.ValidUntil(now.mono)
}

// learn applies a write of the plan's key; p is nil for an invalid plan.
func (s *assignedPart) learn(k mark, p *plan, now moment) {
	if k.mod <= s.known.mod {
		return
	}
	if s.known.mod != 0 && !k.follows(s.known) {
		s.lapsed = true
	}
	s.known = k
	if s.lapsed {
		s.lapse(now)
	}
	if p == nil {
		return
	}
	s.plan, s.at = p, s.raised+k.mod
	index := slices.Index(p.members, s.id)
	s.in = index >= 0
	switch {
	case s.in && s.entered:
		s.assign(p, index, p.from, now)
	case s.in:
		s.enter(now)
	case s.onLoss == Stop:
		s.leave(now)
	}
	s.lapsed = false
}

// join records that the ID belongs to this instance.
func (s *assignedPart) join(now moment) {
	if s.registered {
		return
	}
	s.registered = true
	s.enter(now)
}

// unregister records that others may take this instance for dead.
func (s *assignedPart) unregister() { s.registered = false }

// displaced records that another process has taken this instance's ID, and its part.
func (s *assignedPart) displaced(now moment) {
	s.registered = false
	s.leave(now)
}

// enter starts to use the part, at an edge at which all others know the plan and a former process
// with the ID has stopped.
func (s *assignedPart) enter(now moment) {
	if s.entered || !s.registered || !s.in {
		return
	}
	s.entered, s.lapsed = true, false
	s.opens = edge(max(s.plan.from, now.wall.Add(now.settle)), s.plan.per)
	s.assign(s.plan, slices.Index(s.plan.members, s.id), s.opens, now)
}

// assign reports a part to the receiver.
func (s *assignedPart) assign(p *plan, index int, from headgate.Instant, now moment) {
	part, err := p.part(index)
	if err != nil { // The plan was checked when it was read.
		s.to.Fault(err)
		return
	}
	s.last = edge(max(from, s.last), p.per)
	s.revision, s.notified = s.at, true
	s.to.Assign(pace.Assignment{Plan: part, From: s.last, Settled: now.mono.Add(now.settle), Revision: s.revision})
}

// leave stops using the part.
func (s *assignedPart) leave(now moment) {
	if s.entered {
		s.muted, s.said, s.until = true, now.mono, now.mono
		s.to.ValidUntil(now.mono)
	}
	s.entered, s.opens = false, 0
}

// anew records the start of a new history: revisions start at 0 again.
func (s *assignedPart) anew(now moment) {
	s.lapsed = s.notified
	s.known = mark{}
	s.raised = s.revision
	s.in = false
	s.lapse(now)
}

// lapse starts again after a gap in the sequence of plans: the known plans have no order with later
// ones. With Stop, the instance starts with nothing.
func (s *assignedPart) lapse(now moment) {
	s.last = 0
	if s.onLoss == Stop {
		s.leave(now)
	}
}

// verified records that a read, sent at sent, has found the known plan to be the newest, and that
// the lease is valid until lease.
func (s *assignedPart) verified(sent, lease time.Time, now moment) {
	if !s.entered || !s.in || !s.registered {
		return
	}
	if until := validUntil(s.onLoss, sent, lease, now.valid, s.holdFor); until.After(s.until) {
		s.until = until
	}
	s.speak(now)
}

// late is how much earlier a receiver may read the wall clock.
const late = 2 * time.Millisecond

// speak gives the time until which the part may be used, if the part may be used already.
// Otherwise it gives the time to wait.
func (s *assignedPart) speak(now moment) time.Duration {
	if s.muted && s.opens == 0 {
		return 0
	}
	if left := s.opens.Add(late).Sub(now.wall); s.muted && left > 0 {
		return left
	}
	s.muted = false
	if s.until.After(s.said) {
		s.said = s.until
		s.to.ValidUntil(s.until)
	}
	return 0
}

// validUntil gives until when a part may be used, by the last read that has confirmed it, and by
// the lease.
func validUntil(onLoss OnLoss, sent, lease time.Time, valid, holdFor time.Duration) time.Time {
	if onLoss == Hold {
		return sent.Add(holdFor)
	}
	if until := sent.Add(valid); until.Before(lease) {
		return until
	}
	return lease
}
