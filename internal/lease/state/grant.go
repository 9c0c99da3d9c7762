package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// resend is the time after which a push without an acknowledgement is sent again.
const resend = time.Second

// set records a new amount for a claim. The caller sends it.
func (s *Server) set(c *claim, amount int64) {
	s.number++
	c.grant, c.push = amount, true
	c.resource.change(c, func(l *ledger) { l.send(Version{s.config.Term, s.number}, amount, c.end) })
	if !c.server() {
		return
	}
	parts := c.split(amount)
	c.parts = append(c.parts[:0], parts[:]...)
}

// split returns the parts of the bands of an amount. Lower bands wait for what is not paid yet.
func (c *claim) split(amount int64) (parts [MaxBands]int64) {
	copy(parts[:], c.aims)
	cut(parts[:], c.target-amount)
	return parts
}

// shifts reports whether a server must know other parts of the bands of the same amount: another one in an answer, and in a push
// if a thousandth of the amount moves to other bands.
func (c *claim) shifts() bool {
	if !c.server() || c.push {
		return false
	}
	var moved int64
	parts := c.split(c.grant)
	for b, part := range parts {
		if b < len(c.parts) {
			part -= c.parts[b]
		}
		moved += max(part, 0)
	}
	return moved > 0 && (c.answer != 0 || 1000*moved >= c.grant)
}

// cut takes an amount from the parts of the bands, of the lowest band first.
func cut(parts []int64, over int64) {
	for b := len(parts) - 1; b >= 0 && over > 0; b-- {
		part := min(over, parts[b])
		parts[b] -= part
		over -= part
	}
}

// hand moves the grants of a resource towards the targets.
func (s *Server) hand(r *resource, now headgate.Instant, out *Out) {
	for _, c := range r.claims {
		if c.target < c.grant && c.answer != 0 || c.target != c.grant && !r.terms.Algorithm.divides() {
			s.set(c, c.target)
		}
	}
	if r.terms.Algorithm.divides() {
		s.shrink(r, now)
		s.grow(r)
	}
	for _, c := range r.claims {
		if c.shifts() {
			s.set(c, c.grant)
		}
	}
	for _, c := range r.claims {
		switch {
		case c.answer != 0 && r.waits(c):
		case c.answer != 0:
			s.reply(c, c.answer, now, out)
		case c.push, c.open() && now.Sub(c.pushed) >= resend: // A push or its acknowledgement may be lost.
			s.send(c, 0, now, out)
		}
	}
}

// shrink pushes smaller amounts if another claim wants the capacity, or if the sum of the ledger
// is above the capacity. The largest differences are first, until they are enough.
func (s *Server) shrink(r *resource, now headgate.Instant) {
	d := &s.divider
	d.excess = d.excess[:0]
	short := r.out() - r.capacity
	for _, c := range r.claims {
		switch {
		case c.target < c.grant:
			d.excess = append(d.excess, c)
		case c.gain(c.target):
			short += max(c.target-max(c.ledger.count(), c.grant), 0)
		}
		if c.lag() > 0 && now.Sub(c.pushed) < resend {
			short -= c.lag() // under way
		}
	}
	if short <= 0 {
		return
	}
	slices.SortFunc(d.excess, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(b.grant-b.target, a.grant-a.target), cmp.Compare(a.id, b.id))
	})
	for _, c := range d.excess {
		if short <= 0 {
			break
		}
		short -= c.grant - c.target
		s.set(c, c.target)
	}
}

// grow pays larger amounts from what is free: the bands in order, and in each band first the claims
// that have the smallest part of their targets. Each is paid whole, so that few claims stay below
// their targets. In proportion, many would stay less than the gain of a push below them.
func (s *Server) grow(r *resource) {
	free := max(r.free(), 0)
	d := &s.divider
	r.unpaid = 0
	for band := range r.bands() {
		d.needy = d.needy[:0]
		for _, c := range r.claims {
			if c.target > c.grant && r.band(c.band()) == band && (c.answer != 0 || c.gain(c.target)) {
				d.needy = append(d.needy, c)
			}
		}
		slices.SortStableFunc(d.needy, func(a, b *claim) int { return cmp.Compare(a.part(), b.part()) })
		for _, c := range d.needy {
			paid := min(c.missing(), free)
			to := min(max(c.ledger.count(), c.grant)+paid, c.target)
			if to > c.grant && (c.answer != 0 || c.gain(to)) {
				free -= paid
				s.set(c, to)
			}
			r.unpaid += c.target - c.grant
		}
	}
}

// part returns which part of its target a claim has.
func (c *claim) part() float64 { return float64(c.grant) / float64(c.target) }

// missing returns how much the ledger must grow for the target.
func (c *claim) missing() int64 { return max(c.target-max(c.ledger.count(), c.grant), 0) }

// reply answers a report. A server that listens does not know yet what it may give, and without a lease of the parent it has
// nothing to give: the answer waits.
func (s *Server) reply(c *claim, seq uint64, now headgate.Instant, out *Out) {
	r := c.resource
	if s.listening(r, now) || r.up != nil && r.up.held.Left(now) <= 0 && !r.lost {
		c.answer = seq
		return
	}
	c.answer = 0
	s.send(c, seq, now, out)
}

// send sends the grant of a claim: as an answer, or as a push if seq is 0.
func (s *Server) send(c *claim, seq uint64, now headgate.Instant, out *Out) {
	r := c.resource
	c.push, c.pushed = false, now
	lease := Lease{Resource: r.name, Version: c.ledger.last(), Amount: c.grant, Seq: seq, Safe: r.safe(), Refresh: s.config.Refresh}
	lease.Slots, lease.Unknown, lease.Unbacked = r.terms.Slots, s.unknownFor(r, now), r.isUnbacked(now)
	if seq != 0 {
		lease.Length = s.length(r, now)
	}
	if c.server() {
		lease.Parts, lease.Algorithm = slices.Clone(c.parts), r.terms.Algorithm
		lease.Each, lease.Counted = r.each, c.ledger.count()
	}
	out.Leases = append(out.Leases, Delivery{c.holder.name, lease})
}

// length returns the length of a lease. It ends before the lease of the parent. While a restarted
// server has more out than its parent counts, it prolongs no lease.
func (s *Server) length(r *resource, now headgate.Instant) time.Duration {
	if r.lost {
		r.unbacked = now.Add(counted(s.config.Lease))
	}
	if r.up == nil || r.lost {
		return s.config.Lease
	}
	if s.restarted(r) && r.sum+r.unknown > r.backed() {
		return 0
	}
	return max(min(s.config.Lease, r.up.held.Left(now)*998/1000), 0)
}
