package front

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// receive takes a report of a caller for a sink. The error refuses the whole report. fresh is false for a report whose claims
// are ignored: the holder has sent a newer one, or another server gives the leases.
func (s *Service) receive(caller string, r *state.Report, from sink) (fresh bool, refused *state.Error) {
	s.stats.reports.Add(1)
	if len(r.Holder) < leastHolder {
		return false, &state.Error{
			Code: state.Invalid, Field: "holder",
			Text: fmt.Sprintf("%d bytes: use %d to %d that no other client can guess", len(r.Holder), leastHolder, state.MaxName),
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if !s.leads(now) {
		return false, nil
	}
	before := s.role.server.Heard(r.Holder)
	if err := s.role.server.Receive(now, caller, r, &s.out); err != nil {
		s.stats.refusals.Add(1)
		return false, refusalOf(err)
	}
	if s.owners[r.Holder] != from {
		s.own(strings.Clone(r.Holder), from)
	}
	s.dispatch(now)
	return r.Seq > before, nil
}

// refusalOf gives the *state.Error of a server.
func refusalOf(err error) *state.Error {
	if refused, ok := errors.AsType[*state.Error](err); ok {
		return refused
	}
	return &state.Error{Code: state.Invalid, Text: err.Error()}
}

// own notes that a sink reports for a holder. The caller holds mu.
func (s *Service) own(holder string, by sink) {
	x, isStream := by.(*stream)
	if isStream && x.gone {
		return
	}
	if former := s.owners[holder]; former != nil {
		former.replaced(holder)
	}
	if len(s.owners) >= maxOwners {
		for name := range s.owners {
			if s.role.server.Heard(name) == 0 {
				s.owners[name].replaced(name)
				delete(s.owners, name)
			}
		}
	}
	s.owners[holder] = by
	if isStream {
		x.holders[holder] = struct{}{}
	}
}

// tick does what is due.
func (s *Service) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if !s.closed {
		s.dispatch(s.options.Now())
	}
}

// dispatch does what is due, sends all messages of the server, and sets the timer. The caller holds mu.
func (s *Service) dispatch(now headgate.Instant) {
	for s.leads(now) {
		s.role.server.Advance(now, &s.out)
		s.deliver()
		at, ok := s.role.server.Next()
		if s.options.Elected && (!ok || at > s.role.until) {
			at, ok = s.role.until, true
		}
		if !ok || s.closed {
			return
		}
		if at > now {
			s.arm(now, at)
			return
		}
	}
}

// deliver gives the messages of the server to their sinks. The caller holds mu.
func (s *Service) deliver() {
	for i := range s.out.Leases {
		d := &s.out.Leases[i]
		if d.Lease.Seq == 0 {
			s.stats.pushes.Add(1)
		} else {
			s.stats.leases.Add(1)
		}
		if to := s.owners[d.Holder]; to != nil { // Without a stream, the server sends it again, or the lease ends.
			to.lease(d.Holder, &d.Lease)
		}
	}
	for _, r := range s.out.Refusals {
		s.stats.refusals.Add(1)
		if to := s.owners[r.Holder]; to != nil {
			refused := *r.Err
			refused.Resource = strings.Clone(refused.Resource) // It may be a part of a message.
			to.refuse(r.Holder, r.Seq, &refused)
		}
	}
	for i := range s.out.Leases {
		if to := s.owners[s.out.Leases[i].Holder]; to != nil {
			to.flush()
		}
	}
	for _, r := range s.out.Refusals {
		if to := s.owners[r.Holder]; to != nil {
			to.flush()
		}
	}
	if s.out.Up.Seq != 0 && s.options.Up != nil {
		s.options.Up(&s.out.Up)
	}
	if len(s.out.Marks) > 0 && s.options.Marks != nil {
		s.options.Marks(s.role.term, s.out.Marks)
	}
	s.out.Reset()
}

// arm sets the timer. The caller holds mu.
func (s *Service) arm(now, at headgate.Instant) {
	if s.armed && s.wake <= at {
		return
	}
	s.wake, s.armed = at, true
	in := min(at.Sub(now), time.Hour) // The end of time is far: a tick more each hour does no harm.
	if s.timer == nil {
		s.timer = time.AfterFunc(in, s.tick)
		return
	}
	s.timer.Reset(in)
}

// fromParent takes a message of the parent.
func (s *Service) fromParent(r *response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if !s.leads(now) {
		return
	}
	s.role.server.ReceiveParent(now, r.leases)
	for _, refused := range r.refusals {
		s.role.server.RefuseParent(refused, &s.out)
	}
	s.dispatch(now)
}

// length is that of the leases of this server.
func (s *Service) length() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.State.Lease
}

// Configure replaces the resources of a root, and the callers.
func (s *Service) Configure(resources []state.Resource, callers map[string]state.Caller) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	next := s.options.State
	next.Resources, next.Callers = resources, callers
	if err := next.Check(); err != nil {
		return err
	}
	s.options.State = next // Also for later terms.
	if s.role.server == nil {
		return nil
	}
	if err := s.role.server.Configure(now, resources, callers); err != nil {
		return err
	}
	s.dispatch(now)
	return nil
}
