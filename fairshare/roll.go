package fairshare

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/share"
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
		if who.established() {
			next.established++
		}
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
	c.all = append(c.all, x)
	c.weights += who.weight
	return x
}

// opening is what a client may take at the begin of a cycle without asking anybody:
// its default share when loans are released as the cycle passes, and else its size.
func (c *cycle) opening(x *cell) int64 {
	if c.Reclaim == AtOnce {
		return x.fair.Load()
	}
	return x.size.Load()
}

// divide sets the default shares and the sizes of the cycle's clients. Those who
// have joined in the cycle before have not had their chance to ask for their
// default share: the welcome ones are taken to have done so. The others never
// borrow: else names that somebody invents could claim more than one share.
func (c *cycle) divide() {
	clients := make([]share.Client, len(c.all))
	for i, x := range c.all {
		clients[i] = share.Client{Name: x.client.name, Weight: x.client.weight, Demand: x.client.demand}
	}
	fair := share.Default(c.Capacity, clients)
	for i, x := range c.all {
		x.fair.Store(fair[i])
		switch {
		case x.client.welcome:
			clients[i].Demand = max(clients[i].Demand, fair[i])
		case x.common:
			clients[i].Demand = min(clients[i].Demand, fair[i])
		}
	}
	terms := share.Terms{Division: c.Division, Capacity: c.Capacity, Reservation: c.Reservation}
	for i, size := range terms.Divide(clients) {
		c.all[i].size.Store(size)
	}
}
