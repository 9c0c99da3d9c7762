package memory

import (
	"time"

	"github.com/headgate/headgate"
)

// Clock gives wall time. It reads the wall clock once, in NewClock, and the monotonic clock
// afterwards. So a step of the wall clock does not change its time.
type Clock struct {
	start  time.Time
	origin headgate.Instant
	given  func() headgate.Instant
}

// NewClock makes a Clock. A given function other than nil replaces the machine's clock.
func NewClock(given func() headgate.Instant) Clock {
	if given != nil {
		return Clock{given: given}
	}
	start := time.Now()
	return Clock{start: start, origin: headgate.Instant(start.UnixNano()), given: given}
}

// Now reads the monotonic clock once. The reading is the larger part of the cost of a lone
// decision.
func (c *Clock) Now() headgate.Instant {
	if c.given != nil {
		return c.given()
	}
	return c.origin + headgate.Instant(time.Since(c.start))
}
