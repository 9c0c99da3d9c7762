package etcd

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// standing is which part an instance has been told that it has, and what it may be
// told next. It holds the safety of package etcd: see the package comment. It is for
// one goroutine.
type standing struct {
	to      pace.Receiver
	id      string
	onLoss  OnLoss
	holdFor time.Duration

	known mark  // the newest writing of the plan that was seen, be it valid or not
	plan  *plan // the newest valid plan
	at    int64 // its revision, as it was told
	// lapsed says that a plan may have been missed that others go by.
	lapsed     bool
	registered bool

	in      bool // the newest plan has a part for this instance
	entered bool // it has been told to take it, and may
	told    bool // anything has been told
	last    headgate.Instant
	// When it is muted it takes nothing, until the wall time that it opens at; 0 is not
	// known yet.
	muted bool
	opens headgate.Instant
	until time.Time // until when it may take its part
	said  time.Time // what the receiver knows of that

	raised   int64 // what is added to etcd's revisions, so that they grow
	revision int64 // that was told last
}

// moment is a time by both clocks, and how long it takes from it until all others know
// of a plan or have stopped.
type moment struct {
	mono   time.Time
	wall   headgate.Instant
	settle time.Duration // at most, for any of the others
	valid  time.Duration // that the others count on
}

// begin says that nothing may be taken yet.
func (s *standing) begin(now moment) {
	s.said, s.until = now.mono, now.mono
	s.to.ValidUntil(now.mono)
}

// learn takes a writing of the plan's key; p is nil when it is not valid.
func (s *standing) learn(k mark, p *plan, now moment) {
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

// join says that this instance, and no other, is who its ID says.
func (s *standing) join(now moment) {
	if s.registered {
		return
	}
	s.registered = true
	s.enter(now)
}

// unregister says that others may take this instance for dead.
func (s *standing) unregister() { s.registered = false }

// displaced says that another has taken this instance's ID, and with it its part.
func (s *standing) displaced(now moment) {
	s.registered = false
	s.leave(now)
}

// enter begins to take part, from nothing: at an edge at which all others know of
// the plan that says so, and who had the ID before has stopped.
func (s *standing) enter(now moment) {
	if s.entered || !s.registered || !s.in {
		return
	}
	s.entered, s.lapsed = true, false
	s.opens = edge(max(s.plan.from, now.wall.Add(now.settle)), s.plan.per)
	s.assign(s.plan, slices.Index(s.plan.members, s.id), s.opens, now)
}

// assign tells the receiver a part.
func (s *standing) assign(p *plan, index int, from headgate.Instant, now moment) {
	part, err := p.part(index)
	if err != nil { // It was checked when it was read.
		s.to.Fault(err)
		return
	}
	s.last = edge(max(from, s.last), p.per)
	s.revision, s.told = s.at, true
	s.to.Assign(pace.Assignment{Plan: part, From: s.last, Settled: now.mono.Add(now.settle), Revision: s.revision})
}

// leave takes nothing any more.
func (s *standing) leave(now moment) {
	if s.entered {
		s.muted, s.said, s.until = true, now.mono, now.mono
		s.to.ValidUntil(now.mono)
	}
	s.entered, s.opens = false, 0
}

// anew says that another history has begun: revisions count from 0 again.
func (s *standing) anew(now moment) {
	s.lapsed = s.told
	s.known = mark{}
	s.raised = s.revision
	s.in = false
	s.lapse(now)
}

// lapse begins anew when the line of plans is broken: nothing that was known orders what
// comes, and who must be sure begins from nothing.
func (s *standing) lapse(now moment) {
	s.last = 0
	if s.onLoss == Stop {
		s.leave(now)
	}
}

// verified says that a read that was sent at a time has found the known plan to be
// the newest, and that the lease holds until a time.
func (s *standing) verified(sent, lease time.Time, now moment) {
	if !s.entered || !s.in || !s.registered {
		return
	}
	if until := validUntil(s.onLoss, sent, lease, now.valid, s.holdFor); until.After(s.until) {
		s.until = until
	}
	s.speak(now)
}

// late is by how much a receiver may read the wall clock earlier.
const late = 2 * time.Millisecond

// speak tells until when the part may be taken, unless it may not be yet. It gives how
// long that will take, or 0.
func (s *standing) speak(now moment) time.Duration {
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

// validUntil gives until when a part may be taken, by the last read that has confirmed
// it and by the lease.
func validUntil(onLoss OnLoss, sent, lease time.Time, valid, holdFor time.Duration) time.Time {
	if onLoss == Hold {
		return sent.Add(holdFor)
	}
	if until := sent.Add(valid); until.Before(lease) {
		return until
	}
	return lease
}
