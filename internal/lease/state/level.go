package state

import (
	"time"

	"github.com/headgate/headgate"
)

// A division visits every claim of its resource. In a resource with many claims, it waits while changes are small: a claim is
// answered from the level of the last division, and paid from what is free. So the ledger stays within the capacity, and only the
// division between holders is late.
const (
	// many is the number of claims from which small changes wait.
	many = 1_000
	// manyTicks is the time between two divisions of small changes, in ticks for many claims, and mostWait its bound.
	manyTicks = 2
	mostWait  = 500 * time.Millisecond
	// smallDrift is the part of the capacity up to which changes are small: targets that differ from the last division. Capacity
	// below smallUnpaid of it, for which claims wait, is paid together too.
	smallDrift, smallUnpaid = 100, 1_000
)

// metLevel is the level of a band whose claims have what they want. That of a band without claims, or without capacity, is 0.
const metLevel = MaxAmount

// later returns the time of the next division of small changes.
func (s *Server) later(r *resource, now headgate.Instant) headgate.Instant {
	soonest := now.Add(s.config.Tick)
	if len(r.claims) < s.many {
		return soonest
	}
	wait := time.Duration(len(r.claims)) * manyTicks * s.config.Tick / time.Duration(s.many)
	return max(soonest, r.divided.Add(min(wait, mostWait)))
}

// freed returns the time of the next division after capacity has become free: that of other small changes if claims
// hardly wait for it.
func (s *Server) freed(r *resource, now headgate.Instant) headgate.Instant {
	if r.unpaid > r.capacity/smallUnpaid {
		return now.Add(s.config.Tick)
	}
	return s.later(r, now)
}

// estimate sets the target of a claim with other wants from the level of the last division, and schedules the next one. It
// reports false if the change must be divided now.
func (s *Server) estimate(c *claim, now headgate.Instant) bool {
	r := c.resource
	if len(r.claims) < s.many || c.server() || c.learning || r.lost || r.terms.Algorithm != MaxMin || s.listening(r, now) {
		return false
	}
	level := r.levels[r.band(c.own[0].Band)]
	if level == 0 {
		return false
	}
	target := int64(min(float64(c.wants), level*float64(c.own[0].Weight)))
	r.drifted += max(target-c.target, c.target-target)
	if r.drifted > r.capacity/smallDrift {
		return false
	}
	c.target = target
	s.queue.schedule(r, s.later(r, now))
	return true
}
