package pace

import (
	"time"

	"github.com/headgate/headgate"
)

// clock combines the two clocks of a pacer. Times are nanoseconds of the monotonic clock
// since base, unless a comment says wall time. Windows follow the wall clock, and its
// offset is read once a window.
type clock struct {
	base time.Time
	wall func() headgate.Instant
}

func newClock(wall func() headgate.Instant) clock {
	if wall == nil {
		wall = func() headgate.Instant { return headgate.Instant(time.Now().UnixNano()) }
	}
	// base lies in the past, so that slot 0 and times before the first window never equal
	// the current time.
	return clock{base: time.Now().Add(-time.Minute), wall: wall}
}

// now returns the monotonic time.
func (c *clock) now() int64 { return int64(time.Since(c.base)) }

// ahead returns the offset of the wall clock from the monotonic clock at now.
func (c *clock) ahead(now int64) int64 { return int64(c.wall()) - now }

// convert converts a time to monotonic time. It uses the time's monotonic reading if there is
// one, and otherwise the wall clock with the given offset.
func (c *clock) convert(t time.Time, ahead int64) int64 {
	if t.IsZero() {
		return 0
	}
	if t.Round(0) != t { //nolint:revive // Not when it is: whether it has a monotonic reading.
		return within(t.Sub(c.base))
	}
	return within(t.Sub(time.Unix(0, 0))) - ahead
}

// within clamps a time from outside to 146 years, so that sums of times do not overflow.
func within(d time.Duration) int64 { return min(max(int64(d), -1<<62), 1<<62) }
