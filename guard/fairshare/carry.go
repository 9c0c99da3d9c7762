package fairshare

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// carry continues cycle c with other settings, or at a time before the cycle's start.
// Units used in c count as used in the cycle that contains now. The caller holds mu.
func (l *Limiter) carry(c *cycle, now headgate.Instant, s *settings) {
	next := &cycle{
		number: c.number, settings: s, start: s.startOf(now), from: c.start, founding: c.founding, joined: c.joined,
	}
	next.end = next.start.Add(s.Cycle)
	next.cells, next.pools = make(map[string]*cell, len(l.clients)), &pools{}
	next.removedUnits = c.removedUnits
	for _, x := range c.all {
		if l.clients[x.client.name] != x.client && !x.isOthers {
			next.removedUnits += l.end(x, 0)
		}
	}
	used := next.removedUnits
	for name, who := range l.clients {
		used += next.continueClient(who, c.find(name))
	}
	if c.others != nil {
		used += next.continueClient(l.others, c.others)
	}
	next.sortSeeded()
	l.credit.carry(now, next)
	l.course.carry(c, next)
	used -= l.credit.inCycle // These units were beyond the capacity.
	next.divide()
	next.units = c.units + s.Capacity - c.Capacity
	if s.Cycle != c.Cycle { // The usage before the start of the longer cycle is unknown.
		next.units = used + next.part(s.Capacity, now)
	}
	next.units = min(next.units, s.Capacity)
	next.fund(now, max(0, next.units-used))
	next.full = next.joinedEnough()
	next.pools.due.Store(int64(next.next(now)))
	l.current.Store(next)
}

// continueClient gives a client a new cell in place of last, and returns the units used
// in last. last can be nil.
func (c *cycle) continueClient(who *client, last *cell) int64 {
	if last == nil {
		c.add(who, true)
		return 0
	}
	used := last.close()
	c.add(who, last.known).before = used
	return used
}

// fund puts into each cell the entitlement of its client, within the available units.
// The remaining units go into spare.
func (c *cycle) fund(now headgate.Instant, available int64) {
	wants := make([]share.Client, len(c.all))
	for i, x := range c.all {
		wants[i] = share.Client{Name: x.client.name, Weight: x.client.weight, Demand: c.owed(x, x.before, now)}
	}
	var scratch share.Scratch
	for i, n := range scratch.Proportional(available, wants) {
		c.all[i].give(n)
		available -= n
	}
	c.pools.spare.put(available)
}

// owed returns the client's entitlement for the rest of the cycle after it used some units.
func (c *cycle) owed(x *cell, used int64, now headgate.Instant) int64 {
	if c.Reclaim == NextCycle {
		return max(0, x.size.Load()-used)
	}
	fair := x.fair.Load()
	return max(0, min(c.part(fair, now), fair-used))
}
