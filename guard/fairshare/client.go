package fairshare

import (
	"math"
	"sync/atomic"
	"time"
)

// client is the state of one client. Its counters continue from cycle to cycle.
type client struct {
	name   string
	weight int64
	pinned bool

	// refused counts units of refused attempts since the client became known. repeated
	// counts units of attempts whose request was already counted in the same cycle.
	refused  atomic.Uint64
	repeated atomic.Int64
	// largest is the largest cost of the cycle, if above 1.
	largest atomic.Int64
	// late corrects admitted for draws that were reversed after their cell was closed.
	late atomic.Int64
	// stay is set when a newcomer first finds no units, until it is no newcomer.
	stay atomic.Pointer[stay]

	// Limiter.mu guards the fields below.

	// wanted is the value of refused at the last release of loans, or when the cell was made.
	wanted uint64
	// demand is the demand of the last full cycle.
	demand int64
	// admitted counts units up to the end of the last cycle. shown is the largest total
	// reported so far.
	admitted, shown int64
	// fromRefused and fromRepeated are the counters at the start of the cycle.
	fromRefused  uint64
	fromRepeated int64
	// idle counts consecutive cycles without a request. active counts cycles with requests.
	idle, active int
	// age is the time for which the client has been established and not forgotten. It adds
	// whole cycles, so a step of the clock does not change it.
	age time.Duration
	// welcome reports that the client joined in this cycle, or needed the credit for newcomers, and
	// starts the next cycle with its default share.
	welcome bool
	// lump is the largest cost of recent cycles, with older cycles weighted less.
	lump int64
	// mean and variance forecast the demand per cycle, capped at the default share.
	mean, variance float64
}

func newClient(name string, weight int64) *client { return &client{name: name, weight: weight} }

// noteCost records the cost of a request.
func (c *client) noteCost(cost int64) {
	if largest := c.largest.Load(); cost > largest {
		c.largest.CompareAndSwap(largest, cost) // A lost race stores another large cost, which serves the forecast equally well.
	}
}

// seen returns the client's demand in the running cycle, given its used units.
func (c *client) seen(used int64) int64 {
	again := c.repeated.Load() - c.fromRepeated
	return max(0, used+int64(c.refused.Load()-c.fromRefused)-again)
}

const (
	// forecastPart is the weight of the last cycle in a forecast.
	forecastPart = 0.25
	// paceKnown is the part of a cycle after which the demand so far predicts the rest of
	// the cycle.
	paceKnown = 1.0 / 8
)

// forecast updates the exponentially weighted average and variance of the demand. The
// first cycle sets both.
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

// expected returns mean and variance of the demand in the rest of the cycle. It uses the
// rate of recent cycles, or the rate of this cycle if that rate is higher. Requests are
// modeled as a Poisson stream of lumps, whose variance is proportional to rest. The
// variance beyond the stream is proportional to the square of rest.
func (c *client) expected(used int64, rest float64) (mean, variance float64) {
	pace := c.mean
	if past := 1 - rest; past > paceKnown {
		pace = max(pace, float64(c.seen(used))/past)
	}
	stream := pace * float64(max(c.lump, c.largest.Load()))
	return pace * rest, stream*rest + max(0, c.variance-stream)*rest*rest
}

// established reports that the client is in Weights, or has been active in enough cycles.
func (c *client) established() bool { return c.pinned || c.active >= cyclesSeen }

// lasting reports that the client has been established for so long that later names no
// longer reduce its default share.
func (c *client) lasting() bool { return c.age >= Lasting }

// rank orders clients for eviction: clients with a lower rank are evicted first.
func (c *client) rank() int {
	if c.lasting() {
		return 1
	}
	return 0
}

// addAge adds the cycle that ended, and the idle cycles after it, to the client's age.
func (c *client) addAge(cycle time.Duration, idle, forget int) {
	switch {
	case c.idle >= forget: // A pinned client is never forgotten, but loses its age while idle.
		c.age = 0
	case c.active >= cyclesSeen:
		c.age = min(c.age+cycle*time.Duration(1+idle), 2*Lasting)
	}
}

// ended updates the client at the end of a cycle that idle cycles follow.
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
