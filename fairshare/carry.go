package fairshare

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/share"
)

// carry goes on with the cycle c under other settings, or at a time before its start:
// what was used of it stays used in the cycle that now is in then. mu is held.
func (l *Limiter) carry(c *cycle, now headgate.Instant, s *settings) {
	next := &cycle{
		number: c.number, settings: s, start: s.startOf(now), from: c.start, founding: c.founding, joined: c.joined,
	}
	next.end = next.start.Add(s.Cycle)
	next.cells, next.stage = make(map[string]*cell, len(l.clients)), &stage{}
	next.gone = c.gone
	for _, x := range c.all {
		if l.clients[x.client.name] != x.client && !x.common {
			next.gone += l.end(x, 0)
		}
	}
	used := next.gone
	for name, who := range l.clients {
		used += next.goOn(who, c.find(name))
	}
	if c.others != nil {
		used += next.goOn(l.others, c.others)
	}
	next.divide()
	next.units = c.units + s.Capacity - c.Capacity
	if s.Cycle != c.Cycle { // What was used before in a longer cycle is not known.
		next.units = used + next.part(s.Capacity, now)
	}
	next.units = min(next.units, s.Capacity)
	next.fund(now, max(0, next.units-used))
	next.full = next.joinedEnough()
	next.stage.due.Store(int64(next.next(now)))
	l.current.Store(next)
}

// goOn gives a client a cell in place of its last one, if it has one, and gives what
// it has used.
func (c *cycle) goOn(who *client, last *cell) int64 {
	if last == nil {
		c.add(who, true)
		return 0
	}
	used := last.close()
	c.add(who, last.known).before = used
	return used
}

// fund puts into each cell what its client may still take without asking, within
// what is available, and the rest into spare.
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
	c.stage.spare.put(available)
}

// owed gives what the client is owed of the rest of the cycle after it used some.
func (c *cycle) owed(x *cell, used int64, now headgate.Instant) int64 {
	if c.Reclaim == NextCycle {
		return max(0, x.size.Load()-used)
	}
	fair := x.fair.Load()
	return max(0, min(c.part(fair, now), fair-used))
}
