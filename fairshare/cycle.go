package fairshare

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// cycle is what holds from its start to its end. Who finds another one in its place
// goes on with that; clients that join and settings that change make a new one of
// the same number. All but what the cells and the stage hold is immutable.
type cycle struct {
	*settings

	number     uint64
	start, end headgate.Instant
	// units is how many there are of it: the capacity, or less of one that became longer
	// while it was running.
	units int64
	// from is the start of the cycle that this one was made of when the clock went back
	// by far; else it is start.
	from headgate.Instant
	// cells are those of the clients that it began with, fresh those of who has come
	// since, and others that of the names without a share of their own, nil until there
	// are any. all are they together.
	cells, fresh map[string]*cell
	others       *cell
	all          []*cell
	// established is how many clients have been seen in some cycles before, settled the
	// sum of their weights, and light how many have not.
	established    int
	settled, light int64
	// lasting is how many clients are lasting, and kept the sum of the weights of those and of
	// the clients of Weights.
	lasting int
	kept    int64
	// gone is what clients have used of the cycle that a reload has removed.
	gone int64
	// founding says that nobody was known when the cycle began: all shares of it are default shares.
	founding bool
	// joined is how many clients have come since.
	joined int
	// full says that further names share one bucket.
	full  bool
	stage *stage
}

// stage is what clients share besides their own cells: units that are nobody's.
type stage struct {
	// due is when loans are released next, or the cycle ends.
	due atomic.Int64
	_   [lineBytes - 8]byte
	// reserve is for owners who ask for more than the rest of the cycle owes them.
	reserve pot
	_       [lineBytes - 8]byte
	// spare is for who is within its size.
	spare pot
	_     [lineBytes - 8]byte
	// open is for who is above it: what was left when all who had been refused were given.
	open pot
	_    [lineBytes - 8]byte
}

const lineBytes = 64

// find gives the cell of a name; nil is none.
func (c *cycle) find(name string) *cell {
	if x := c.cells[name]; x != nil {
		return x
	}
	return c.fresh[name]
}

// has gives how many clients have shares of their own.
func (c *cycle) has() int { return len(c.cells) + len(c.fresh) }

// holds reports whether t is in the cycle.
func (c *cycle) holds(t headgate.Instant) bool { return t >= c.start && t < c.end }

// latest is by how much a caller may be late who has read the clock before he asks.
const latest = time.Second

// longBefore reports whether t is so far before the cycle that the clock must have gone back.
func (c *cycle) longBefore(t headgate.Instant) bool { return c.start.Sub(t) > max(latest, c.Cycle) }

// rest gives the part of the cycle that is still to come: 1 at its start, 0 at its end.
func (c *cycle) rest(t headgate.Instant) float64 {
	return max(0, min(1, float64(c.end.Sub(t))/float64(c.Cycle)))
}

// part gives the part of n units, rounded down, that the rest of the cycle is of it.
func (c *cycle) part(n int64, t headgate.Instant) int64 {
	rest := max(0, min(c.Cycle, c.end.Sub(t)))
	hi, lo := bits.Mul64(uint64(n), uint64(rest))
	whole, _ := bits.Div64(hi, lo, uint64(c.Cycle))
	return int64(whole)
}

// cell is what a client has in a cycle: one line of the processor's cache. Units are at any time in one place: in a
// cell, in the reserve, in spare, or used. They move, and are never made.
type cell struct {
	// left is what the client may still take without asking anybody, or closed.
	left atomic.Int64
	// size and fair are the client's share of the cycle and its default share.
	size, fair atomic.Int64
	// given is what was put into left, less what was taken out again but by requests.
	given  atomic.Int64
	client *client
	// before is what the client had used of the cycle when the cell was made, and drawn
	// what it has taken from pots since.
	before int64
	drawn  atomic.Int64
	// common is of the names without a share of their own.
	common bool
	// known says that the client was known when the cycle began: newcomers do not draw
	// on what is held for owners.
	known bool
}

// closed is left in cells that another one has taken the place of.
const closed = math.MinInt64

// outcome is what became of an attempt.
type outcome uint8

const (
	taken outcome = iota
	refused
	over // The cell is closed: look again.
)

// take takes cost from the cell, or what is missing there from what is nobody's. It
// gives what is left in the cell.
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

// draw takes what is left in a cell, and what that lacks of cost from the pots behind.
// It gives over when the cell has changed meanwhile.
func (c *cycle) draw(x *cell, now headgate.Instant, left, cost int64) (int64, outcome) {
	var from drawn
	if !c.gather(x, now, x.used(left)+cost, cost-left, &from) {
		return left, refused
	}
	// Counted first: who closes the cell in between finds it used, at worst too early, and never too late.
	x.drawn.Add(cost - left)
	if !x.left.CompareAndSwap(left, 0) {
		x.drawn.Add(left - cost)
		c.stage.putBack(&from)
		return 0, over
	}
	return 0, taken
}

// drawn is what was taken from each pot.
type drawn struct{ reserve, spare, open int64 }

// gather takes n units for a client that will have used so much of the cycle then,
// from the pots that it may draw on: owners within their default share from the
// reserve, from spare and from what is open to all, borrowers who are not ahead of
// their size from the latter two, and any from the last. It takes n units or none.
func (c *cycle) gather(x *cell, now headgate.Instant, used, n int64, from *drawn) bool {
	owner, s := used <= x.fair.Load(), c.stage
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
		return false // To try would hide from others what there is.
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

// paced gives what a borrower may have used until now: its default share, and of what
// it borrows as much as of the cycle has passed, as loans are released. So borrowers
// who ask steadily are not late for what one who floods has taken.
func (c *cycle) paced(x *cell, now headgate.Instant) int64 {
	size := x.size.Load()
	if c.Reclaim == NextCycle {
		return size
	}
	return size - c.part(max(0, size-x.fair.Load()), now)
}

func (s *stage) putBack(from *drawn) {
	s.reserve.put(from.reserve)
	s.spare.put(from.spare)
	s.open.put(from.open)
}
