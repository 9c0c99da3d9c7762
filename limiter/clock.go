package limiter

import (
	"time"

	"github.com/headgate/headgate"
)

// clock is memory.Clock, with a reading that is inlined.
type clock struct {
	start  time.Time
	origin headgate.Instant
	given  func() headgate.Instant
}

func newClock(given func() headgate.Instant) clock {
	start := time.Now()
	return clock{start: start, origin: headgate.Instant(start.UnixNano()), given: given}
}

// machine reads the monotonic clock of the machine.
func (c *clock) machine() headgate.Instant { return c.origin + headgate.Instant(time.Since(c.start)) }

func (c *clock) now() headgate.Instant {
	if c.given != nil {
		return c.given()
	}
	return c.machine()
}
