package fairshare

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/share"
)

// mostWelcome bounds the newcomers of a cycle that are given their default share in it, as each is divided for among all.
const mostWelcome = 64

// stranger gives the cell of a name that has none: a new one, or that of the others.
// nil means that the cycle has changed.
func (l *Limiter) stranger(c *cycle, now headgate.Instant, name string) *cell {
	if name != Others && !c.full {
		return l.join(c, now, name, false)
	}
	if name != Others && c.has() < c.MaxClients && l.strange.seen(name, c.number, uint64(c.ForgetAfter)) {
		return l.join(c, now, name, true)
	}
	if c.others != nil {
		return c.others
	}
	return l.join(c, now, Others, false)
}

// joinedEnough reports whether further names share one bucket.
func (c *cycle) joinedEnough() bool {
	return c.joined >= c.NewClientsPerCycle || c.has() >= c.MaxClients
}

// join lets a name in, or the bucket of the others. again says that the name has been
// among them for some cycles: it need not be one of the first new names of this one.
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

// enroll gives the client of a name that is new. It keeps a copy: the caller's may be
// a piece of a request. mu is held.
func (l *Limiter) enroll(name string) *client {
	if name == Others {
		return l.others
	}
	who := newClient(strings.Clone(name), 1)
	l.clients[who.name] = who
	return who
}

// enter gives a newcomer a cell. What the cycle that c is a copy of has stays as it is.
func (c *cycle) enter(who *client) *cell {
	x := newCell(who)
	if x.common {
		c.others = x
	} else {
		c.fresh = maps.Clone(c.fresh)
		if c.fresh == nil {
			c.fresh = make(map[string]*cell)
		}
		c.fresh[who.name] = x
	}
	c.count(x) // Behind the end of what the copied one has of all, and by who holds mu.
	return x
}

// welcomes reports whether the next newcomer, after some, is given its default share
// at once, at the cost of those who are there.
func (c *cycle) welcomes(after int) bool {
	if c.founding {
		return after < mostWelcome
	}
	return after < int(max(1, min(c.settled/welcomePart, mostWelcome)))
}

// settle finds a share for the newcomer x, the last of all. A welcome one has at once
// the lesser of its default share and what the others leave; another one takes from
// spare and open what it needs.
func (c *cycle) settle(x *cell, now headgate.Instant, welcome bool) {
	if !welcome {
		x.fair.Store(c.unwelcome())
		return
	}
	x.client.welcome = !c.founding && !x.common
	c.fair()
	fair := x.fair.Load()
	clients := asking(c.all)
	yielded := c.yield(now, fair, clients[:len(clients)-1])
	got := c.stage.spare.takeUpTo(fair)
	got += c.stage.open.takeUpTo(fair - got)
	x.give(got)
	c.resize(x, got, yielded, clients)
}

// unwelcome returns the default share of a newcomer for which nothing is divided anew: about
// what the next division gives it.
func (c *cycle) unwelcome() int64 {
	newcomers := min(c.light, c.room())
	fair := c.Capacity * newcomers / (c.settled + newcomers + 1)
	if room, ok := c.lateRoom(); ok {
		fair = min(fair, c.Capacity*room/(c.kept+room))
	}
	return fair / max(1, c.light)
}

// yield puts into spare what the cells leave to a newcomer with this default share:
// what they are not owed any more. When shares are handed out at the start they leave
// as much as it needs, out of what they have above their default shares if they can;
// then it gives how much each has left of its size.
func (c *cycle) yield(now headgate.Instant, fair int64, clients []share.Client) (yielded []int64) {
	if c.Reclaim == AtOnce {
		for _, x := range c.all[:len(clients)] {
			c.stage.spare.put(x.lower(c.owed(x, x.used(x.left.Load()), now)))
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
		for i, n := range scratch.Proportional(fair-c.stage.spare.units.Load(), clients) {
			n = c.all[i].lower(c.all[i].left.Load() - n)
			c.stage.spare.put(n)
			yielded[i] += n
		}
	}
	return yielded
}

// resize gives the newcomer x the size got, and takes it from the others' sizes: what
// they have yielded of them, and the rest in proportion. The sizes are the capacity
// still. In the first cycle of all, all have their default shares.
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
		clients[i].Demand = other.size.Load() // x has none yet.
	}
	var scratch share.Scratch
	for i, n := range scratch.Proportional(rest, clients) {
		c.all[i].size.Add(-n)
	}
	x.size.Store(got)
}

// pin enters the clients of Weights into the registry, and lets go of those that are
// not among them any more, and of those for which there is no room then. mu is held,
// or nobody else has l.
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

// dismiss removes n clients that are not pinned: late ones before lasting ones,
// those that have been idle longest first.
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
