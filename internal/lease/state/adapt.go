package state

import (
	"time"

	"github.com/headgate/headgate"
)

const (
	// adaptEvery is the time between two changes of an adapted capacity.
	adaptEvery = 2 * time.Second
	// mostCut bounds what one change takes, as a part of the capacity.
	mostCut = 0.1
	// recovery is the part of the configured capacity that comes back each second.
	recovery = 0.02
	// leastUse is the shortest time of which the reported units make a rate.
	leastUse = time.Second
)

// use is what a holder has reported about its calls.
type use struct {
	since          headgate.Instant // the beginning of the following units
	spent, refused int64
	// Until then, the holder counts with this rate of calls, and with this rate of calls that the resource refused.
	until      headgate.Instant
	rate, lost int64
}

// adapts reports whether refused calls lower the capacity. A child leaves that to its parents.
func (r *resource) adapts() bool { return r.up == nil && r.terms.MinCapacity > 0 }

// use takes what a claim says about calls. The first units of a holder belong to an unknown time, and do not count. Units count
// up to the lease of the holder, and for as long as the time to which they belong: a report each 5 s has the calls of 5 s.
func (s *Server) use(c *claim, m *Claim, now headgate.Instant) {
	u, r := c.use, c.resource
	if u == nil {
		if m.Spent > 0 {
			c.use = &use{since: now}
		}
		return
	}
	u.spent, u.refused = min(u.spent+min(m.Spent, MaxAmount), MaxAmount), min(u.refused+min(m.Refused, MaxAmount), MaxAmount)
	elapsed := now.Sub(u.since)
	if elapsed < leastUse {
		return
	}
	u.rate, u.lost = 0, 0
	if u.spent > 0 {
		u.rate = int64(min(float64(u.spent)/elapsed.Seconds(), float64(c.ledger.count())))
		if r.terms.Slots {
			u.rate = c.ledger.count() // Calls and slots have no common unit.
		}
		u.lost = int64(float64(u.rate) * float64(u.refused) / float64(u.spent))
	}
	u.until = now.Add(max(min(elapsed, s.config.Lease), adaptEvery))
	r.report(u, elapsed)
	u.since, u.spent, u.refused = now, 0, 0
	if r.adapts() && u.lost > 0 {
		s.queue.schedule(r, max(r.adapted.Add(adaptEvery), now))
	}
}

// report adds what a holder has spent to the next report to the parent.
func (r *resource) report(u *use, elapsed time.Duration) {
	if r.up == nil {
		return
	}
	r.spent = min(r.spent+over(u.rate, elapsed), MaxAmount)
	r.refused = min(r.refused+over(u.lost, elapsed), r.spent)
}

// over returns the units of a rate in a time, at most MaxAmount.
func over(rate int64, d time.Duration) int64 {
	return int64(min(float64(rate)*d.Seconds(), float64(MaxAmount)))
}

// reported fills the fields of a claim to the parent, since the last one. Holders that do not report calls count with
// their leases, if others report.
func (r *resource) reported(m *Claim, elapsed time.Duration) {
	if r.spent > 0 {
		for _, c := range r.claims {
			if c.use == nil {
				r.spent = min(r.spent+over(c.ledger.count(), elapsed), MaxAmount)
			}
		}
	}
	m.Spent, m.Refused = r.spent, r.refused
	r.spent, r.refused = 0, 0
}

// adapt changes the capacity of a resource with min_capacity, at most every 2 s.
func (s *Server) adapt(r *resource, now headgate.Instant) {
	if !r.adapts() || now < r.adapted.Add(adaptEvery) {
		return
	}
	full := r.terms.Capacity
	back := float64(full) * recovery * adaptEvery.Seconds()
	next := float64(r.capacity)*(1-min(r.refusedPart(now), mostCut)) + back
	r.capacity = int64(min(max(next, float64(r.terms.MinCapacity)), float64(full)))
	r.each, r.adapted = r.capacity, now
}

// refusedPart returns the part of the calls that the resource refused. Holders that do not report calls count with their
// leases, without refusals.
func (r *resource) refusedPart(now headgate.Instant) float64 {
	var all, lost int64
	for _, c := range r.claims {
		switch u := c.use; {
		case u == nil:
			all += c.ledger.count()
		case now < u.until:
			all, lost = all+u.rate, lost+u.lost
		}
	}
	if all <= 0 {
		return 0
	}
	return float64(lost) / float64(all)
}

// adaptsAt returns the time of the next change of the capacity, or never if there is nothing to change.
func (r *resource) adaptsAt(now headgate.Instant) headgate.Instant {
	if !r.adapts() || r.capacity == r.terms.Capacity && r.refusedPart(now) == 0 {
		return never
	}
	return r.adapted.Add(adaptEvery)
}
