package fairshare

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// mostWelcome bounds the newcomers that get their default share in the cycle in which they
// join. Each of them costs a division among all clients.
const mostWelcome = 64

// joinOrOthers returns the cell for a name without one: a new cell, or the cell of Others.
// It returns nil if the cycle has changed.
func (l *Limiter) joinOrOthers(c *cycle, now headgate.Instant, name string) *cell {
	if name != Others && !c.full {
		return l.join(c, now, name, false)
	}
	if name != Others && c.clientCount() < c.MaxClients && l.candidates.seen(name, c.number, uint64(c.ForgetAfter)) {
		return l.join(c, now, name, true)
	}
	if c.others != nil {
		return c.others
	}
	return l.join(c, now, Others, false)
}

// joinedEnough reports whether further new names share the cell of Others.
func (c *cycle) joinedEnough() bool {
	return c.joined >= c.NewClientsPerCycle || c.clientCount() >= c.MaxClients
}

// join adds a client, or the cell of Others, to the cycle. again reports that the name
// has been in Others for some cycles, and so does not count as a new name of this cycle.
func (l *Limiter) join(c *cycle, now headgate.Instant, name string, again bool) *cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.Load() != c {
		return nil
	}
	if again && l.returned >= c.NewClientsPerCycle {
		name = Others
	}
	if name == Others && c.others != nil {
		return c.others
	}
	next := *c
	x := next.enter(l.enroll(name))
	next.settle(x, max(now, c.start), c.welcomes(c.joined+l.returned))
	switch {
	case name == Others:
	case again:
		l.returned++
	default:
		next.joined++
	}
	next.full = next.joinedEnough()
	l.current.Store(&next)
	return x
}

// enroll registers a client for a new name. It copies the name, because the caller's string
// can refer to the memory of a whole request. The caller holds mu.
func (l *Limiter) enroll(name string) *client {
	if name == Others {
		return l.others
	}
	who := newClient(strings.Clone(name), 1)
	l.clients[who.name] = who
	return who
}

// enter gives a newcomer a cell. c is a copy of the current cycle, and the maps and cells of
// the original stay unchanged.
func (c *cycle) enter(who *client) *cell {
	x := newCell(who)
	who.active = 0 // Others has joined before.
	who.stay.Store(nil)
	x.newcomer = c.isNewcomer(who)
	if x.isOthers {
		c.others = x
	} else {
		c.fresh = maps.Clone(c.fresh)
		if c.fresh == nil {
			c.fresh = make(map[string]*cell)
		}
		c.fresh[who.name] = x
	}
	c.count(x) // The append writes behind the original's length of all. The caller holds mu.
	return x
}

// welcomes reports whether the newcomer that follows after others gets its default share
// at once, at the cost of existing clients.
func (c *cycle) welcomes(after int) bool {
	if c.founding || c.TrustNames {
		return after < mostWelcome
	}
	return after < int(max(1, min(c.establishedWeight/welcomePart, mostWelcome)))
}

// settle sets the share of the newcomer x, the last element of all. A welcome newcomer gets
// the smaller of its default share and what the other clients yield. Other newcomers draw
// on spare and open.
func (c *cycle) settle(x *cell, now headgate.Instant, welcome bool) {
	if !welcome {
		x.fair.Store(c.unwelcome())
		return
	}
	x.client.welcome = !c.founding && !x.isOthers
	c.fair()
	fair := x.fair.Load()
	clients := shareClients(c.all)
	yielded := c.yield(now, fair, clients[:len(clients)-1])
	got := c.pools.spare.takeUpTo(fair)
	got += c.pools.open.takeUpTo(fair - got)
	x.give(got)
	c.resize(x, got, yielded, clients)
}

// unwelcome returns the default share of a newcomer without a new division. The result
// is about what the next division gives it.
func (c *cycle) unwelcome() int64 {
	newcomers := min(c.newcomers, c.newcomerRoom())
	fair := c.Capacity * newcomers / (c.establishedWeight + newcomers + 1)
	if room, ok := c.lateRoom(); ok {
		fair = min(fair, c.Capacity*room/(c.protectedWeight+room))
	}
	return fair / max(1, c.newcomers)
}

// yield moves units from existing cells into spare, for a newcomer with this default share.
// Under AtOnce it moves all units above the entitlements. Under NextCycle it moves at most
// fair units, preferably units above the default shares. It then returns how many
// units of each client's size were moved.
func (c *cycle) yield(now headgate.Instant, fair int64, clients []share.Client) (yielded []int64) {
	if c.Reclaim == AtOnce {
		for _, x := range c.all[:len(clients)] {
			c.pools.spare.put(x.lower(c.owed(x, x.used(x.left.Load()), now)))
		}
		return nil
	}
	yielded = make([]int64, len(clients))
	var scratch share.Scratch
	for _, kept := range [...]func(x *cell, left int64) int64{
		func(x *cell, left int64) int64 { return min(left, max(0, x.fair.Load()-x.used(left))) },
		func(*cell, int64) int64 { return 0 },
	} {
		for i := range clients {
			left := max(0, c.all[i].left.Load())
			clients[i].Demand = left - kept(c.all[i], left)
		}
		for i, n := range scratch.Proportional(fair-c.pools.spare.units.Load(), clients) {
			n = c.all[i].lower(c.all[i].left.Load() - n)
			c.pools.spare.put(n)
			yielded[i] += n
		}
	}
	return yielded
}

// resize gives the newcomer x the size got, and reduces the other sizes by the same sum:
// first by the yielded units, then in proportion. So the sizes still add up to the
// capacity. In the founding cycle all sizes are default shares.
func (c *cycle) resize(x *cell, got int64, yielded []int64, clients []share.Client) {
	if c.founding {
		for _, other := range c.all {
			other.size.Store(other.fair.Load())
		}
		return
	}
	rest := got
	for i, n := range yielded {
		n = min(n, c.all[i].size.Load())
		c.all[i].size.Add(-n)
		rest -= n
	}
	for i, other := range c.all {
		clients[i].Demand = other.size.Load() // The size of x is still 0.
	}
	var scratch share.Scratch
	for i, n := range scratch.Proportional(rest, clients) {
		c.all[i].size.Add(-n)
	}
	x.size.Store(got)
}

// pin registers the clients of Weights, and unpins clients that were removed from
// Weights. It evicts clients above MaxClients. The caller holds mu, or is the only user of l.
func (l *Limiter) pin(s *settings) {
	for name, who := range l.clients {
		if who.pinned && s.Weights[name] == 0 {
			who.pinned, who.weight = false, 1
		}
	}
	for name, weight := range s.Weights {
		who := l.clients[name]
		if who == nil {
			who = newClient(name, weight)
			l.clients[name] = who
		}
		who.pinned, who.weight = true, weight
	}
	if over := len(l.clients) - s.MaxClients; over > 0 {
		l.dismiss(over)
	}
}

// dismiss evicts n clients that are not pinned: late clients before lasting clients,
// and longest idle first.
func (l *Limiter) dismiss(n int) {
	var list []*client
	for _, who := range l.clients {
		if !who.pinned {
			list = append(list, who)
		}
	}
	slices.SortFunc(list, func(a, b *client) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.idle, a.idle),
			cmp.Compare(a.demand, b.demand), cmp.Compare(a.name, b.name))
	})
	for _, who := range list[:min(n, len(list))] {
		delete(l.clients, who.name)
	}
}
