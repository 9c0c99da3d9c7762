package fairshare

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// cycle is the state of one cycle. A join or a change of settings replaces the cycle by
// a new one with the same number. Only the cells and the pools are mutable.
type cycle struct {
	*settings

	number     uint64
	start, end headgate.Instant
	// units is the number of units in this cycle: the capacity, or less if the cycle
	// was lengthened while it was running.
	units int64
	// from is normally equal to start. After a large step back of the clock, from is the start
	// of the cycle that this cycle replaced.
	from headgate.Instant
	// cells has the clients known at the start of the cycle, and fresh the clients that
	// joined since. others is the cell of Others, or nil if unused. all has all of these cells.
	cells, fresh map[string]*cell
	others       *cell
	all          []*cell
	// established is the number of established clients, and establishedWeight the sum of
	// their weights. newcomers is the number of clients that are not established.
	established                  int
	establishedWeight, newcomers int64
	// lasting is the number of lasting clients. protectedWeight is the sum of the weights of
	// lasting and pinned clients.
	lasting         int
	protectedWeight int64
	// removedUnits is the number of units that clients removed by a reload used in this cycle.
	removedUnits int64
	// founding reports that no client was known at the start of the cycle. Then all shares of
	// the cycle are default shares.
	founding bool
	// joined is the number of clients that joined since the start.
	joined int
	// full reports that further new names share the cell of Others.
	full  bool
	pools *pools
}

// pools holds the units that belong to no client, and the time of the next release.
// Each field has a cache line of its own.
type pools struct {
	// due is the time of the next release of loans, or the end of the cycle.
	due atomic.Int64
	_   [lineBytes - 8]byte
	// reserve serves owners whose demand exceeds their entitlement for the rest of the cycle.
	reserve pool
	_       [lineBytes - 8]byte
	// spare serves owners, and borrowers that are not ahead of their size.
	spare pool
	_     [lineBytes - 8]byte
	// open serves all clients. It holds what remains after refused demand was served.
	open pool
	_    [lineBytes - 8]byte
}

const lineBytes = 64

// find returns the cell of a name, or nil.
func (c *cycle) find(name string) *cell {
	if x := c.cells[name]; x != nil {
		return x
	}
	return c.fresh[name]
}

// clientCount returns the number of clients with shares of their own.
func (c *cycle) clientCount() int { return len(c.cells) + len(c.fresh) }

// contains reports whether t is within the cycle.
func (c *cycle) contains(t headgate.Instant) bool { return t >= c.start && t < c.end }

// latest bounds the delay between a caller's clock reading and its call.
const latest = time.Second

// longBefore reports whether t is so far before the cycle that the clock must have
// stepped back.
func (c *cycle) longBefore(t headgate.Instant) bool { return c.start.Sub(t) > max(latest, c.Cycle) }

// rest returns the remaining part of the cycle: 1 at its start, 0 at its end.
func (c *cycle) rest(t headgate.Instant) float64 {
	return max(0, min(1, float64(c.end.Sub(t))/float64(c.Cycle)))
}

// prorate returns n multiplied by the remaining part of the cycle, rounded down.
func (c *cycle) part(n int64, t headgate.Instant) int64 {
	rest := max(0, min(c.Cycle, c.end.Sub(t)))
	hi, lo := bits.Mul64(uint64(n), uint64(rest))
	whole, _ := bits.Div64(hi, lo, uint64(c.Cycle))
	return int64(whole)
}

// cell is a client's account in a cycle, and fits one cache line. Each unit of a cycle is
// in exactly one place: a cell, the reserve, spare, open, or used. Units move between
// these places and are never created.
type cell struct {
	// left is the number of units that the client can take without the pools, or closed.
	left atomic.Int64
	// size is the client's share of the cycle, and fair its default share.
	size, fair atomic.Int64
	// given is the number of units put into left, minus the units that lower removed.
	given  atomic.Int64
	client *client
	// before is the client's usage in the cycle when the cell was made. drawn is the number
	// of units taken from pools since. After settled, settle moves it to the client.
	before int64
	drawn  atomic.Int64
	// isOthers reports that this is the cell of the names without a share of their own.
	isOthers bool
	// known reports that the client was known at the start of the cycle. Newcomers
	// cannot draw on the reserve.
	known bool
	// newcomer reports that the client can use the credit for newcomers.
	newcomer bool
	// settled reports that the cell is closed and its drawn units were read.
	settled atomic.Bool
}

// closed is the value of left in a cell that was replaced.
const closed = math.MinInt64

// outcome is the result of an attempt to take units.
type outcome uint8

const (
	taken outcome = iota
	refused
	over // The cell is closed: find the client's cell again.
)

// take takes cost from the cell, and missing units from the pools. It returns the units
// left in the cell.
func (c *cycle) take(x *cell, now headgate.Instant, cost int64) (left int64, what outcome) {
	for {
		left = x.left.Load()
		switch {
		case left == closed:
			return 0, over
		case left < cost:
			left, what = c.draw(x, now, left, cost)
			if what != over {
				return left, what
			}
		case x.left.CompareAndSwap(left, left-cost):
			return left - cost, taken
		}
	}
}

// draw takes the left units of a cell, and the missing units from the pools. It returns
// over if the cell changed in the meantime.
func (c *cycle) draw(x *cell, now headgate.Instant, left, cost int64) (int64, outcome) {
	var from drawn
	if !c.gather(x, now, x.used(left)+cost, cost-left, &from) {
		return left, refused
	}
	// Count before the swap: if the cell is closed in between, the units count as used too
	// early, but never too late.
	x.drawn.Add(cost - left)
	if !x.left.CompareAndSwap(left, 0) {
		x.reverse(cost - left)
		c.pools.putBack(&from)
		return 0, over
	}
	return 0, taken
}

// drawn is the number of units taken from each pool.
type drawn struct{ reserve, spare, open int64 }

// gather takes n units from the pools, or none. used is the client's usage including
// these units. Known owners within their default share draw on the reserve. Owners,
// and borrowers that are not ahead of their size, draw on spare. All clients draw on open.
func (c *cycle) gather(x *cell, now headgate.Instant, used, n int64, from *drawn) bool {
	owner, s := used <= x.fair.Load(), c.pools
	reserve, there := owner && x.known, s.open.units.Load()
	if reserve {
		there += s.reserve.units.Load()
	}
	held := s.spare.units.Load()
	spare := held > 0 && (owner || used <= c.paced(x, now))
	if spare {
		there += held
	}
	if there < n {
		return false // A failed attempt would briefly hide units from other callers.
	}
	if reserve {
		from.reserve = s.reserve.takeUpTo(n)
	}
	if spare {
		from.spare = s.spare.takeUpTo(n - from.reserve)
	}
	from.open = s.open.takeUpTo(n - from.reserve - from.spare)
	if from.reserve+from.spare+from.open < n {
		s.putBack(from)
		return false
	}
	return true
}

// paced returns the units that a borrower can have used by now: its default share, plus
// its loan in proportion to the elapsed part of the cycle. So a flooding borrower leaves
// units for borrowers with a steady rate.
func (c *cycle) paced(x *cell, now headgate.Instant) int64 {
	size := x.size.Load()
	if c.Reclaim == NextCycle {
		return size
	}
	return size - c.part(max(0, size-x.fair.Load()), now)
}

func (s *pools) putBack(from *drawn) {
	s.reserve.put(from.reserve)
	s.spare.put(from.spare)
	s.open.put(from.open)
}
