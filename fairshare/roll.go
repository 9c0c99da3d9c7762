package fairshare

import (
	"github.com/headgate/headgate"
)

// roll ends the cycle c and begins that of now. Cycles in between were idle. mu is held.
func (l *Limiter) roll(c *cycle, now headgate.Instant) {
	start := c.startOf(now)
	idle := int(start.Sub(c.end) / c.Cycle)
	l.last = usage{admitted: c.gone, capacity: c.Capacity}
	for _, x := range c.all {
		l.last.admitted += l.end(x, idle)
	}
	if idle > 0 {
		l.last = usage{capacity: c.Capacity}
	}
	l.forget(c)
	l.returned = 0
	l.begin(c.settings, c.number+1+uint64(idle), start)
}

// end closes a cell for good, and gives what was admitted of it.
func (l *Limiter) end(x *cell, idle int) int64 {
	used := x.close()
	x.client.ended(used, x.fair.Load(), idle)
	x.client.grows(l.current.Load().Cycle, idle, l.current.Load().ForgetAfter)
	return max(0, used)
}

// forget removes the clients that asked for nothing long enough.
func (l *Limiter) forget(c *cycle) {
	for name, who := range l.clients {
		if who.idle >= c.ForgetAfter && !who.pinned {
			delete(l.clients, name)
		}
	}
}

// begin makes a new cycle the current one: it divides the capacity, and puts what each
// client begins with into its cell. mu is held.
func (l *Limiter) begin(s *settings, number uint64, start headgate.Instant) {
	next := &cycle{settings: s, number: number, start: start, end: start.Add(s.Cycle), units: s.Capacity, from: start}
	next.founding = len(l.clients) == 0
	next.cells, next.stage = make(map[string]*cell, len(l.clients)), &stage{}
	for _, who := range l.clients {
		next.add(who, true)
	}
	if l.others.idle == 0 && l.others.demand > 0 {
		next.add(l.others, true)
	}
	next.divide()
	unshared := next.units
	for _, x := range next.all {
		x.client.welcome = false
		n := next.opening(x)
		x.give(n)
		unshared -= n
	}
	next.stage.spare.put(unshared) // All of it, when there is nobody yet.
	next.full = next.joinedEnough()
	next.stage.due.Store(int64(next.next(start)))
	l.current.Store(next)
}

// add gives a client a cell among those of the begin.
func (c *cycle) add(who *client, known bool) *cell {
	x := newCell(who)
	x.known = known
	if x.common {
		c.others = x
	} else {
		c.cells[who.name] = x
	}
	c.count(x)
	return x
}

// count takes a cell among all.
func (c *cycle) count(x *cell) {
	c.all = append(c.all, x)
	switch {
	case x.common:
	case x.client.established():
		c.established++
		c.settled += x.client.weight
		c.countLasting(x.client)
	default:
		c.light++
	}
}

// protects says that a client keeps its default share beside late ones: it is lasting, or
// an operator named it.
func (c *cycle) protects(who *client) bool { return who.pinned || who.lasting() }

func (c *cycle) countLasting(who *client) {
	if who.lasting() {
		c.lasting++
	}
	if c.protects(who) {
		c.kept += who.weight
	}
}

// opening is what a client may take at the begin of a cycle without asking anybody:
// its default share when loans are released as the cycle passes, and else its size.
func (c *cycle) opening(x *cell) int64 {
	if c.Reclaim == AtOnce {
		return x.fair.Load()
	}
	return x.size.Load()
}
