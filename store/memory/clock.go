package memory

import (
	"time"

	"github.com/headgate/headgate"
)

// Clock gives wall time that a monotonic clock carries on: it starts at the wall
// time of NewClock and never steps, whatever is done to the wall clock since.
type Clock struct {
	start  time.Time
	origin headgate.Instant
	given  func() headgate.Instant
}

// NewClock makes a Clock, or one that asks given, unless that is nil.
func NewClock(given func() headgate.Instant) Clock {
	if given != nil {
		return Clock{given: given}
	}
	start := time.Now()
	return Clock{start: start, origin: headgate.Instant(start.UnixNano()), given: given}
}

// Now costs one reading of the monotonic clock, which is the greater part of a
// lone decision.
func (c *Clock) Now() headgate.Instant {
	if c.given != nil {
		return c.given()
	}
	return c.origin + headgate.Instant(time.Since(c.start))
}
