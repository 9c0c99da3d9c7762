package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// Life returns the longest time after a take for which the take counts or its receipt can
// return units. It is rounded up.
func Life(p headgate.Policy) time.Duration {
	l := p.Limit
	switch {
	case l.Count == 0 && p.Algorithm != headgate.Ban:
		return 0
	case p.Algorithm == headgate.Ban:
		return l.Per + p.BanFor
	case l.Calendar != headgate.NoCalendar:
		// After a step back of the clock, a take counts in a window that begins up to one window later. It counts from the end
		// of its minute.
		return 2*LongestWindow(l.Calendar) + time.Minute
	case !isBucket(p.Algorithm):
		// After a small step back of the clock, a fixed window lasts up to one window longer. A
		// sliding window counts one sub-window more.
		return 2 * l.Per
	default:
		// Burst intervals, plus bookings ahead of them. The floating-point result is too short
		// by at most a part in 2^52. A minute covers that error for any refill time.
		refill := float64(Room(p)) / float64(l.Count) * float64(l.Per)
		return time.Duration(refill) + p.MaxWait + time.Minute
	}
}
