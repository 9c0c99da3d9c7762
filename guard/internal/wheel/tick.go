package wheel

import (
	"math"
	"time"
)

// Tick is the grain of departures: an entry fires at the first whole tick at or
// after its own. A network moves a request about by as much; a finer grain would
// wake the process more often for nothing.
const Tick = time.Millisecond

// tickAfter gives the first tick at or after a time: departures are rounded up.
func tickAfter(at time.Duration) int64 {
	tick := int64(at / Tick)
	if at%Tick > 0 {
		tick++
	}
	return tick
}

// tickAt gives the last tick at or before a time: the present is rounded down. The
// end of all time, 292 years after the origin, counts as whole, or what departs in
// its last part of a tick never would.
func tickAt(now time.Duration) int64 {
	if now == math.MaxInt64 {
		return tickAfter(now)
	}
	return int64(now / Tick)
}

// timeOf gives the time of a tick.
func timeOf(tick int64) time.Duration {
	if tick > math.MaxInt64/int64(Tick) {
		return math.MaxInt64
	}
	return time.Duration(tick) * Tick
}
