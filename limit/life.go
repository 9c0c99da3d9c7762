package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// Life gives how long after a take, at most, the take counts and its receipt can give
// anything back. It is rounded up.
func Life(p headgate.Policy) time.Duration {
	l := p.Limit
	switch {
	case l.Count == 0 && p.Algorithm != headgate.Ban:
		return 0
	case p.Algorithm == headgate.Ban:
		return l.Per + p.BanFor
	case !isBucket(p.Algorithm):
		// A fixed window is held for as long as it is, after a small step back of the
		// clock; a sliding one counts a sub-window more.
		return 2 * l.Per
	default:
		// Burst intervals, and what is booked ahead of them. In floating point, which is
		// a part in 2^52 too short at the worst: a minute covers that for any refill.
		refill := float64(Room(p)) / float64(l.Count) * float64(l.Per)
		return time.Duration(refill) + p.MaxWait + time.Minute
	}
}
