package state

import (
	"time"

	"github.com/headgate/headgate"
)

// MaxUnknown bounds Lease.Unknown at the holder: the longest lease that a server may be configured to give.
const MaxUnknown = time.Hour

// Grace is the time after a loss in which a server gives leases again, and still counts leases that it does not know. The safe
// amount stays in force for this time. The zero Grace has ended.
type Grace struct {
	term uint64 // of the server
	end  headgate.Instant
}

// Receive takes the newest lease of the server. In each term, the first lease decides the latest end. Later ones may only end the
// Grace earlier, so that a server does not keep safe amounts in force by always saying that it does not know all leases.
func (g *Grace) Receive(now headgate.Instant, newest *Lease) {
	end := headgate.Instant(0)
	if newest.Unknown > 0 {
		end = now.Add(min(newest.Unknown, MaxUnknown))
	}
	if newest.Version.Term == g.term {
		end = min(end, g.end)
	}
	g.term, g.end = newest.Version.Term, end
}

// Left returns the time until the end.
func (g *Grace) Left(now headgate.Instant) time.Duration { return max(g.end.Sub(now), 0) }

// unknownFor returns for how long the server may count leases of a resource that it does not know, or its parent may. It adds
// Config.Learn, which the larger leases that follow need at most to arrive. A holder gets its first answer Config.Learn after the start
// or later, so the sum is at most the longest lease.
//
// While the safe amounts are the capacity, the server has one for each holder. If a holder below kept another one in
// force, both would count.
func (s *Server) unknownFor(r *resource, now headgate.Instant) time.Duration {
	if r.lost || !r.terms.Algorithm.divides() {
		return 0 // None and Static give leases whatever others have.
	}
	end := headgate.Instant(0)
	if r.unknown > 0 {
		end = r.forgotten.Add(s.config.Learn)
	}
	if r.up != nil {
		end = max(end, r.up.grace.end)
		if r.up.learning { // The parent has not heard what the holders want.
			end = max(end, now.Add(s.config.Learn))
		}
	}
	return max(end.Sub(now), 0)
}

// isUnbacked reports whether the capacity comes from OnLoss of this server, or of one above it.
func (r *resource) isUnbacked(now headgate.Instant) bool {
	return r.lost || r.up != nil && r.up.held.Left(now) > 0 && r.up.held.Lease().Unbacked
}

// follow takes the terms and the amount of the newest lease of the parent. While kept, the safe amounts are the capacity unless the
// lease is larger.
func (s *Server) follow(r *resource, now headgate.Instant, safe int64) {
	newest, amount := r.up.held.Lease(), r.up.held.Amount(now)
	r.terms.Safe = safe
	if r.lost = r.kept && amount < scaled(safe, r.holders); r.lost {
		return
	}
	r.terms.Algorithm, r.terms.Slots, r.each = min(newest.Algorithm, MaxMin), newest.Slots, newest.Each
	r.parts, r.capacity = newest.Parts, amount
}

// expireUp ends what has ended of a server as a holder of its parent: the lease, and its Grace.
func (s *Server) expireUp(r *resource, now headgate.Instant) {
	switch up := r.up; {
	case up.held.Left(now) <= 0:
		if r.kept, up.grace = false, (Grace{}); up.known && !r.lost && r.capacity+r.sum > 0 {
			s.lapse(r, now)
		}
	case r.kept && up.grace.Left(now) <= 0:
		r.kept = false
		s.follow(r, now, up.held.Lease().Safe)
	}
}
