package fairshare

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate"
)

// roll ends cycle c and starts the cycle that contains now. Cycles in between were idle. The
// caller holds mu.
func (l *Limiter) roll(c *cycle, now headgate.Instant) {
	start := c.startOf(now)
	idle := int(start.Sub(c.end) / c.Cycle)
	l.last = usage{admitted: c.removedUnits, capacity: c.Capacity}
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

// end closes a cell permanently, and returns the number of units admitted from it.
func (l *Limiter) end(x *cell, idle int) int64 {
	used := x.close()
	x.client.ended(used, x.fair.Load(), idle)
	x.client.addAge(l.current.Load().Cycle, idle, l.current.Load().ForgetAfter)
	return max(0, used)
}

// forget removes clients that were idle for ForgetAfter cycles.
func (l *Limiter) forget(c *cycle) {
	for name, who := range l.clients {
		if who.idle >= c.ForgetAfter && !who.pinned {
			delete(l.clients, name)
		}
	}
}

// begin makes a new cycle the current one. It divides the capacity and fills the cells. The
// caller holds mu.
func (l *Limiter) begin(s *settings, number uint64, start headgate.Instant) {
	next := &cycle{settings: s, number: number, start: start, end: start.Add(s.Cycle), units: s.Capacity, from: start}
	next.founding = len(l.clients) == 0
	next.cells, next.pools = make(map[string]*cell, len(l.clients)), &pools{}
	for _, who := range l.clients {
		next.add(who, true)
	}
	if l.others.idle == 0 && l.others.demand > 0 {
		next.add(l.others, true)
	}
	next.sortSeeded()
	next.divide()
	l.credit.begin(next)
	l.course.begin(next, l.last.admitted)
	unshared := next.units
	for _, x := range next.all {
		x.newcomer = x.newcomer && x.fair.Load() > 0 // Without a share, no request is within it.
		n := next.opening(x)
		x.give(l.credit.hold(next, x, n))
		unshared -= n
		x.client.welcome = false
	}
	next.pools.spare.put(unshared) // Without clients, spare gets the whole capacity.
	next.full = next.joinedEnough()
	next.pools.due.Store(int64(start) + 1) // Units used exactly at the start are recorded first.
	l.current.Store(next)
}

// add gives a client a cell at the start of the cycle.
func (c *cycle) add(who *client, known bool) *cell {
	x := newCell(who)
	x.known = known
	x.newcomer = c.isNewcomer(who)
	if x.isOthers {
		c.others = x
	} else {
		c.cells[who.name] = x
	}
	c.count(x)
	return x
}

// sortSeeded gives the cells an order that does not depend on the order of a map, for Config.Seed.
func (c *cycle) sortSeeded() {
	if c.Seed != 0 {
		slices.SortFunc(c.all, func(a, b *cell) int { return cmp.Compare(a.client.name, b.client.name) })
	}
}

// count adds a cell to all, and its client to the cycle's sums.
func (c *cycle) count(x *cell) {
	c.all = append(c.all, x)
	switch {
	case x.isOthers:
	case x.client.established():
		c.established++
		c.establishedWeight += x.client.weight
		c.countLasting(x.client)
	default:
		c.newcomers++
	}
}

// protects reports that a client keeps its default share beside late clients: it is lasting,
// or the operator listed it in Weights.
func (c *cycle) protects(who *client) bool { return who.pinned || who.lasting() }

func (c *cycle) countLasting(who *client) {
	if who.lasting() {
		c.lasting++
	}
	if c.protects(who) {
		c.protectedWeight += who.weight
	}
}

// opening returns the units in a client's cell at the start of a cycle: the default share
// under AtOnce, else the size.
func (c *cycle) opening(x *cell) int64 {
	if c.Reclaim == AtOnce {
		return x.fair.Load()
	}
	return x.size.Load()
}
