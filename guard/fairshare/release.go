package fairshare

import (
	"math"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// wants lists the clients that were refused since the last release, with their refused units. The
// slices are reused.
type wants struct {
	cells   []*cell
	clients []share.Client
	scratch share.Scratch
}

// release takes units above the entitlements out of all cells. It fills the reserve and
// spare, grants units to refused clients, and puts the rest into open. It returns the units that all
// clients have used. The caller holds mu.
// The cost is some ten nanoseconds per client.
func (l *Limiter) release(c *cycle, now headgate.Instant) (used int64) {
	w := &l.wants
	w.cells, w.clients = w.cells[:0], w.clients[:0]
	var owners shortage
	var freed int64
	var kept float64
	used = c.removedUnits
	for _, x := range c.all {
		one, used1 := c.release(x, now, &owners)
		freed, used = freed+one, used+used1
		kept += c.keeps(x, now)
		w.note(x)
	}
	freed += c.pools.open.takeUpTo(math.MaxInt64)
	freed = c.pools.reserve.level(min(owners.most(), c.Capacity/reservePart), freed)
	freed = c.pools.spare.level(int64(math.Ceil(kept)), freed)
	c.pools.open.put(freed - w.grant(c.Division, freed))
	clear(w.cells)
	return used
}

// release lowers a cell to its client's entitlement, and returns the number of removed
// units, and the client's usage. It adds the expected demand beyond the entitlement, within the default share, to owners.
func (c *cycle) release(x *cell, now headgate.Instant, owners *shortage) (freed, used int64) {
	left := x.left.Load()
	used = x.used(left)
	owed := min(left, c.owed(x, used, now))
	freed = x.lower(owed)
	if room := x.fair.Load() - used - owed; room > 0 && x.known {
		mean, variance := x.client.expected(used, c.rest(now))
		owners.add(mean, variance, owed, room)
	}
	return freed, used
}

// keeps returns the units that spare holds for a borrower: the loan that the borrower
// can use until about the next release. The result is at most the expected demand for the
// rest of the cycle.
func (c *cycle) keeps(x *cell, now headgate.Instant) float64 {
	used, fair := x.used(x.left.Load()), x.fair.Load()
	lacks := c.paced(x, c.next(now)) - max(used, fair)
	if x.isOthers || lacks <= 0 {
		return 0
	}
	rest := c.rest(now)
	pace := float64(x.client.demand)
	if past := 1 - rest; past > paceKnown {
		pace = float64(x.client.seen(used)) / past
	}
	return max(0, min(float64(lacks), float64(used)+pace*rest-float64(max(used, fair))))
}

// note adds a client that was refused since the last release although it has used its
// default share.
func (w *wants) note(x *cell) {
	refused := x.client.refused.Load()
	n := int64(refused - x.client.wanted)
	x.client.wanted = refused
	if n <= 0 || x.isOthers || x.used(x.left.Load()) < x.fair.Load() { // Others can take open units.
		return
	}
	w.cells = append(w.cells, x)
	w.clients = append(w.clients, share.Client{Name: x.client.name, Weight: x.client.weight, Demand: n})
}

// grant divides units among the listed clients, and returns the number of granted units.
func (w *wants) grant(d Division, units int64) (granted int64) {
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
