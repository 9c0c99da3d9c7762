package pace

import (
	"time"

	"github.com/headgate/headgate"
)

// clock is the two clocks of a pacer. Everything is reckoned in nanoseconds of the
// monotonic one, since base; windows are the wall clock's, and how far it is ahead is
// read once a window. What is not said to be wall time is monotonic.
type clock struct {
	base time.Time
	wall func() headgate.Instant
}

func newClock(wall func() headgate.Instant) clock {
	if wall == nil {
		wall = func() headgate.Instant { return headgate.Instant(time.Now().UnixNano()) }
	}
	// The zero is a while ago, so that slot 0 and times before the first window are never now.
	return clock{base: time.Now().Add(-time.Minute), wall: wall}
}

// now gives the monotonic time.
func (c *clock) now() int64 { return int64(time.Since(c.base)) }

// ahead gives how far the wall clock is ahead of the monotonic one at now.
func (c *clock) ahead(now int64) int64 { return int64(c.wall()) - now }

// of gives a time as monotonic: by its monotonic reading when it has one, else by the
// wall clock, which is ahead by so much.
func (c *clock) of(t time.Time, ahead int64) int64 {
	if t.IsZero() {
		return 0
	}
	if t.Round(0) != t { //nolint:revive // Not when it is: whether it has a monotonic reading.
		return within(t.Sub(c.base))
	}
	return within(t.Sub(time.Unix(0, 0))) - ahead
}

// within bounds a time that somebody else has said to 146 years, so that sums of times
// have room.
func within(d time.Duration) int64 { return min(max(int64(d), -1<<62), 1<<62) }
