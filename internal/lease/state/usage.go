package state

import (
	"time"

	"github.com/headgate/headgate"
)

// Counts returns the numbers of holders, resources and claims.
func (s *Server) Counts() (holders, resources, claims int) {
	return len(s.holders), len(s.resources), len(s.claimed)
}

// Names appends the names of all resources with claims, in no order.
func (s *Server) Names(to []string) []string {
	for name := range s.resources {
		to = append(to, name)
	}
	return to
}

// HolderUsage is one claim of a resource. Server says that the holder has other holders below it: Holders of them.
type HolderUsage struct {
	Holder, Caller         string
	Wants, Granted, Ledger int64
	Holders                int64
	Server                 bool
	End                    time.Duration
}

// Holders appends the claims of a resource, in no order.
func (s *Server) Holders(now headgate.Instant, name string, to []HolderUsage) []HolderUsage {
	r := s.resources[name]
	if r == nil {
		return to
	}
	for _, c := range r.claims {
		to = append(to, HolderUsage{
			Holder: c.holder.name, Caller: c.holder.by.name, Wants: c.wants, Granted: c.grant, Ledger: c.ledger.count(),
			Holders: c.holders, Server: c.server(), End: c.end.Sub(now),
		})
	}
	return to
}

// Usage is what is out of one resource.
type Usage struct {
	Capacity, Ledger, Unknown, Wants, Granted int64
	// Mark is what the next master of the group counts as out. It is 0 without marks.
	Mark   int64
	Claims int
	Slots  bool
	End    time.Duration // until the lease of the parent ends
}

// Usage returns what is out of a resource. The time is linear in its claims.
func (s *Server) Usage(now headgate.Instant, name string) (usage Usage, ok bool) {
	r := s.resources[name]
	if r == nil {
		return Usage{}, false
	}
	usage = Usage{Capacity: r.capacity, Ledger: r.sum, Unknown: r.unknown, Claims: len(r.claims), Slots: r.terms.Slots, Mark: r.mark.asked}
	for _, c := range r.claims {
		usage.Wants, usage.Granted = usage.Wants+c.wants, usage.Granted+c.grant
	}
	if r.up != nil {
		usage.End = r.up.held.Left(now)
	}
	return usage, true
}
