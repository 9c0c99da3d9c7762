package fairshare

import (
	"maps"
	"slices"

	"github.com/headgate/headgate"
)

// Preview returns what Take would decide at now, and the shares at that time, and changes nothing: it decides in a copy. A request with
// an ID counts as a first attempt. Preview costs time and memory in proportion to the number of clients, and holds the lock under
// which clients join, so it is for explanations and not for decisions.
func (l *Limiter) Preview(now headgate.Instant, r Request) (headgate.Decision, Shares) {
	twin := l.twin()
	if twin == nil {
		return headgate.Undecided(), Shares{} // New did not make the Limiter.
	}
	shares := twin.Shares(now)
	d, _ := twin.Take(now, r)
	return d, shares
}

// twin returns a copy of the limiter without the table of attempts, which decides nothing. Units that others take while it is made
// may be missing from one of its accounts.
func (l *Limiter) twin() *Limiter {
	if l.current.Load() == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.current.Load()
	t := &Limiter{
		clients: make(map[string]*client, len(l.clients)), returned: l.returned, last: l.last, credit: l.credit, course: l.course,
	}
	t.candidates.copyFrom(&l.candidates)
	copies := make(map[*client]*client, len(l.clients)+1)
	copied := func(who *client) *client {
		if copies[who] == nil {
			copies[who] = who.twin()
		}
		return copies[who]
	}
	for name, who := range l.clients {
		t.clients[name] = copied(who)
	}
	t.others = copied(l.others)
	t.current.Store(c.twin(copied))
	return t
}

// twin returns a copy of a cycle with cells, pools and clients of its own.
func (c *cycle) twin(copied func(*client) *client) *cycle {
	next := *c
	next.pools, next.all = &pools{}, make([]*cell, 0, len(c.all))
	next.pools.due.Store(c.pools.due.Load())
	next.pools.reserve.put(c.pools.reserve.units.Load())
	next.pools.spare.put(c.pools.spare.units.Load())
	next.pools.open.put(c.pools.open.units.Load())
	next.cells, next.fresh, next.others = maps.Clone(c.cells), maps.Clone(c.fresh), nil
	for _, x := range c.all {
		mine := x.twin(copied(x.client))
		next.all = append(next.all, mine)
		switch name := x.client.name; {
		case x.isOthers:
			next.others = mine
		case next.cells[name] == x:
			next.cells[name] = mine
		default:
			next.fresh[name] = mine
		}
	}
	next.all = slices.Clip(next.all)
	return &next
}

func (x *cell) twin(who *client) *cell {
	mine := &cell{client: who, before: x.before, isOthers: x.isOthers, known: x.known, newcomer: x.newcomer}
	mine.left.Store(x.left.Load())
	mine.size.Store(x.size.Load())
	mine.fair.Store(x.fair.Load())
	mine.given.Store(x.given.Load())
	mine.drawn.Store(x.drawn.Load())
	mine.settled.Store(x.settled.Load())
	return mine
}

// twin copies a client. The caller holds the lock of its limiter.
func (c *client) twin() *client {
	mine := &client{
		name: c.name, weight: c.weight, pinned: c.pinned, wanted: c.wanted, demand: c.demand, admitted: c.admitted, shown: c.shown,
		fromRefused: c.fromRefused, fromRepeated: c.fromRepeated, idle: c.idle, active: c.active, age: c.age, welcome: c.welcome,
		lump: c.lump, mean: c.mean, variance: c.variance,
	}
	mine.refused.Store(c.refused.Load())
	mine.repeated.Store(c.repeated.Load())
	mine.largest.Store(c.largest.Load())
	mine.late.Store(c.late.Load())
	if s := c.stay.Load(); s != nil {
		own := &stay{arrival: s.arrival, arrived: s.arrived, onCredit: s.onCredit, borrowed: s.borrowed, held: s.held}
		own.creditAt.Store(s.creditAt.Load())
		own.shareAt.Store(s.shareAt.Load())
		mine.stay.Store(own)
	}
	return mine
}

// copyFrom takes over the names of another table.
func (s *candidates) copyFrom(other *candidates) {
	other.mu.Lock()
	defer other.mu.Unlock()
	s.names, s.seed, s.places = other.names, other.seed, slices.Clone(other.places)
}
