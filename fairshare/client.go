package fairshare

import (
	"math"
	"sync/atomic"
	"time"
)

// client is what is known of a client. Its counts go on from cycle to cycle.
type client struct {
	name   string
	weight int64
	pinned bool

	// They count units since the client is known: refused those of refused attempts, and
	// repeated those of attempts at a request that was counted in the same cycle already.
	refused  atomic.Uint64
	repeated atomic.Int64
	// largest is the largest cost of the cycle, when it is above 1.
	largest atomic.Int64

	// The following is under Limiter.mu.

	// last is the cell that was closed last, and lastDrawn what close has seen drawn.
	last      *cell
	lastDrawn int64
	// wanted is refused when loans were released last, or its cell was made.
	wanted uint64
	// demand is that of the last full cycle.
	demand int64
	// admitted counts units up to the end of the last cycle, and shown is the most that was told of its total.
	admitted, shown int64
	// fromRefused and fromRepeated are the counts at the begin of the cycle.
	fromRefused  uint64
	fromRepeated int64
	// idle counts cycles without a request, and active those with some.
	idle, active int
	// age is how long the client has been established and not forgotten, in whole cycles.
	// It is a sum of cycles and not a time: a step of the clock does not make it older.
	age time.Duration
	// welcome says that it joined in this cycle and enters the next with its default share.
	welcome bool
	// lump is the largest cost of the last cycles, less and less.
	lump int64
	// mean and variance forecast the units that it asks for in a cycle within its default share.
	mean, variance float64
}

func newClient(name string, weight int64) *client { return &client{name: name, weight: weight} }

// bears notes a cost.
func (c *client) bears(cost int64) {
	if largest := c.largest.Load(); cost > largest {
		c.largest.CompareAndSwap(largest, cost) // Another one's is as good for a forecast.
	}
}

// seen gives what the client asked for in the running cycle, of which it has used some.
func (c *client) seen(used int64) int64 {
	again := c.repeated.Load() - c.fromRepeated
	return max(0, used+int64(c.refused.Load()-c.fromRefused)-again)
}

const (
	// forecastPart is how much of a forecast the last cycle is.
	forecastPart = 0.25
	// paceKnown is the part of a cycle after which what a client asked for in it says
	// how it goes on.
	paceKnown = 1.0 / 8
)

// forecast is an average and a variance that weigh older cycles less and less. The
// first cycle says all that is known.
func (c *client) forecast(demand float64) {
	c.lump = max(1, c.largest.Swap(0), c.lump-c.lump/4)
	if c.mean == 0 && c.variance == 0 {
		c.mean, c.variance = demand, demand
		return
	}
	off := demand - c.mean
	c.mean += forecastPart * off
	c.variance = (1 - forecastPart) * (c.variance + forecastPart*off*off)
}

// expected gives mean and variance of what the client asks for in the rest of the
// cycle: as in the last cycles, or at the pace of this one if that is more. It comes in
// lumps of its costs, as a Poisson stream; and what cycles differ by beyond that is of
// their level, which spreads with the rest itself and not with its root.
func (c *client) expected(used int64, rest float64) (mean, variance float64) {
	pace := c.mean
	if past := 1 - rest; past > paceKnown {
		pace = max(pace, float64(c.seen(used))/past)
	}
	stream := pace * float64(max(c.lump, c.largest.Load()))
	return pace * rest, stream*rest + max(0, c.variance-stream)*rest*rest
}

// established says that the client is no newcomer, nor a name that was made up.
func (c *client) established() bool { return c.pinned || c.active >= cyclesSeen }

// lasting says that the client has been established for long enough that later names do
// not lessen its default share further.
func (c *client) lasting() bool { return c.age >= Lasting }

// rank orders clients for dismissal: the lower go first.
func (c *client) rank() int {
	if c.lasting() {
		return 1
	}
	return 0
}

// grows adds a cycle that has ended, and idle ones after it, to the age.
func (c *client) grows(cycle time.Duration, idle, forget int) {
	switch {
	case c.idle >= forget: // A client of Weights is not forgotten, but it does not ask.
		c.age = 0
	case c.active >= cyclesSeen:
		c.age = min(c.age+cycle*time.Duration(1+idle), 2*Lasting)
	}
}

// ended takes the end of a cycle, and of idle ones after it, into account.
func (c *client) ended(used, fair int64, idle int) {
	demand := c.seen(used)
	c.admitted += used
	c.fromRefused, c.fromRepeated = c.refused.Load(), c.repeated.Load()
	c.welcome = c.welcome && idle == 0
	c.forecast(float64(min(demand, fair)))
	if demand > 0 {
		c.idle = 0
		c.active++
	} else {
		c.idle++
	}
	if idle > 0 {
		demand = 0
		c.idle += min(idle, math.MaxInt32)
		forgotten := math.Pow(1-forecastPart, float64(idle))
		c.mean, c.variance = c.mean*forgotten, c.variance*forgotten
	}
	c.demand = demand
}
