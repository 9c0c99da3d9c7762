package fairshare

import (
	"math"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/share"
)

// wants is who was refused since loans were released last, and what for; the slices
// are used again.
type wants struct {
	cells   []*cell
	clients []share.Client
	scratch share.Scratch
}

// release takes back what the rest of the cycle does not owe anybody any more, holds
// of it what owners may ask beyond that, and lends the rest: to those who were
// refused, and to who comes. mu is held; its cost is some ten nanoseconds a client.
func (l *Limiter) release(c *cycle, now headgate.Instant) {
	c.stage.due.Store(int64(c.next(now)))
	w := &l.wants
	w.cells, w.clients = w.cells[:0], w.clients[:0]
	var owners shortage
	var freed int64
	var kept float64
	for _, x := range c.all {
		freed += c.release(x, now, &owners)
		kept += c.keeps(x, now)
		w.note(x)
	}
	freed += c.stage.open.takeUpTo(math.MaxInt64)
	freed = c.stage.reserve.level(min(owners.most(), c.Capacity/reservePart), freed)
	freed = c.stage.spare.level(int64(math.Ceil(kept)), freed)
	c.stage.open.put(freed - w.grant(c.Division, freed))
	clear(w.cells)
}

// release lowers a cell to what its client is still owed, adds what it may ask for
// beyond that within its default share to the shortage, and gives what it took out.
func (c *cycle) release(x *cell, now headgate.Instant, owners *shortage) (freed int64) {
	left := x.left.Load()
	used := x.used(left)
	owed := min(left, c.owed(x, used, now))
	freed = x.lower(owed)
	if room := x.fair.Load() - used - owed; room > 0 && x.known {
		mean, variance := x.client.expected(used, c.rest(now))
		owners.add(mean, variance, owed, room)
	}
	return freed
}

// keeps gives what spare holds for a borrower: what it could have borrowed until about
// the next release, by its size, and has not; but no more than it will come for, at
// its pace, in the rest of the cycle.
func (c *cycle) keeps(x *cell, now headgate.Instant) float64 {
	used, fair := x.used(x.left.Load()), x.fair.Load()
	lacks := c.paced(x, c.next(now)) - max(used, fair)
	if x.common || lacks <= 0 {
		return 0
	}
	rest := c.rest(now)
	pace := float64(x.client.demand)
	if past := 1 - rest; past > paceKnown {
		pace = float64(x.client.seen(used)) / past
	}
	return max(0, min(float64(lacks), float64(used)+pace*rest-float64(max(used, fair))))
}

// note remembers a client that was refused since the last release although it has
// used its default share.
func (w *wants) note(x *cell) {
	refused := x.client.refused.Load()
	n := int64(refused - x.client.wanted)
	x.client.wanted = refused
	if n <= 0 || x.common || x.used(x.left.Load()) < x.fair.Load() { // The others have what is open then.
		return
	}
	w.cells = append(w.cells, x)
	w.clients = append(w.clients, share.Client{Name: x.client.name, Weight: x.client.weight, Demand: n})
}

// grant divides units among those who want them, and gives how many it gave.
func (w *wants) grant(d share.Division, units int64) (granted int64) {
	if len(w.cells) == 0 || units <= 0 {
		return 0
	}
	split := w.scratch.Proportional
	if d == share.MaxMin {
		split = w.scratch.Fill
	}
	for i, n := range split(units, w.clients) {
		w.cells[i].give(n)
		granted += n
	}
	return granted
}
