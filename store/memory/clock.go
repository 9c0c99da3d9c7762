package memory

import (
	"time"

	"github.com/headgate/headgate"
)

// clock gives wall time that a monotonic clock carries on: it starts at the
// wall time of New and never steps, whatever is done to the wall clock since.
type clock struct {
	start  time.Time
	origin headgate.Instant
	given  func() headgate.Instant
}

func newClock(given func() headgate.Instant) clock {
	start := time.Now()
	return clock{start: start, origin: headgate.Instant(start.UnixNano()), given: given}
}

// now costs one reading of the monotonic clock, which is the greater part of a
// lone decision.
func (c *clock) now() headgate.Instant {
	if c.given != nil {
		return c.given()
	}
	return c.origin + headgate.Instant(time.Since(c.start))
}
