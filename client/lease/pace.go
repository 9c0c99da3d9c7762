package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/pace"
)

// Pace paces calls by the lease of a resource, as a [pace.Source]: the instances of a program share a limit, and the part of
// each follows its demand within 2 s. It reports the requests and the waiters of its pacer to the servers, and gives the pacer the
// rate of the lease: see [pace.Rate]. The permits end with the lease. One pacer at a time may use it.
type Pace struct {
	leases         *Client
	resource       string
	spent, refused atomic.Int64 // since the last report to the client
}

// every is the time between two reports of the demand to the client.
const every = 100 * time.Millisecond

// NewPace returns a Pace for a resource. The pacer claims the resource when it starts, and releases it when
// it is closed.
func NewPace(leases *Client, resource string) (*Pace, error) {
	switch {
	case leases == nil:
		return nil, errors.New("client/lease: the client is nil: make one with New")
	case resource == "":
		return nil, errors.New("client/lease: the resource has no name: use the name of a resource of the servers, like mail")
	}
	return &Pace{leases: leases, resource: resource}, nil
}

// Answered counts an answered call of so many units, and whether the resource itself refused it because of overload, with 429 or
// 503. Servers with min_capacity lower the capacity if the refused part is large. It is safe for concurrent use.
func (s *Pace) Answered(units int64, refused bool) {
	const most = 1 << 40
	units = min(max(units, 0), most)
	s.spent.Add(units)
	if refused {
		s.refused.Add(units)
	}
}

// Follow implements [pace.Source].
func (s *Pace) Follow(ctx context.Context, to pace.Receiver) error {
	l, err := s.leases.Lease(s.resource)
	if err != nil {
		return err
	}
	defer l.Close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	f := follower{lease: l, to: to, source: s}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f.measure()
		case <-l.Changed():
			if err := f.adopt(); err != nil {
				return err
			}
		}
	}
}

var errPaceClosed = errors.New("client/lease: the client of the leases was closed: close the pacer first")

// follower is the state of Follow.
type follower struct {
	lease     *Lease
	source    *Pace
	to        pace.Receiver
	requested int64
	fault     string
}

// measure reports the demand.
func (f *follower) measure() {
	total, waiting := f.to.Requested()
	f.lease.Demand(total - f.requested)
	f.lease.Waiting(waiting)
	f.requested = total
	refused := f.source.refused.Swap(0) // Before spent, which Answered counts first.
	f.lease.Spent(f.source.spent.Swap(0))
	f.lease.Refused(refused)
}

// adopt gives the pacer the rate of the lease.
func (f *follower) adopt() error {
	s := f.lease.State()
	if s.Closed {
		f.to.Rate(pace.Rate{Limited: true})
		return errPaceClosed
	}
	fault := f.faultOf(&s)
	if fault != f.fault && fault != "" {
		f.to.Fault(errors.New("lease: " + fault))
	}
	f.fault = fault
	if s.Slots { // A pacer spends nothing of them. The configuration of the server may change back.
		s.Amount, s.Limited = 0, true
	}
	if s.Until.IsZero() && !s.Lost && s.Amount == 0 {
		return nil // There is no lease yet: callers wait.
	}
	f.to.Rate(pace.Rate{Amount: s.Amount, Limited: s.Limited})
	f.to.ValidUntil(s.Until)
	return nil
}

// faultOf says what the operator must know of the lease, or nothing.
func (f *follower) faultOf(s *State) string {
	switch {
	case s.Slots:
		return "resource " + f.lease.Resource() +
			" has slots, and a pacer needs a rate: set a capacity like 500/s, without unit: in_flight, at the root"
	case s.Lost && s.Fault == "":
		return "the lease of " + f.lease.Resource() + " has ended: OnLoss of the client decides the rate until a server answers"
	case s.Lost:
		return "the lease of " + f.lease.Resource() + " has ended: OnLoss of the client decides the rate: " + s.Fault
	}
	return s.Fault
}
