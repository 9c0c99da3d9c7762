package queue

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// Pace says how the units of a slot follow each other.
type Pace struct {
	// Interval is the time from one unit to the next, in nanoseconds.
	Interval float64
	// Spaced is for a leaky bucket: a request goes with its first unit, and the next
	// request waits until all its units have passed. Otherwise a request goes with its
	// last unit, when as many tokens have come.
	Spaced bool
}

// PaceOf gives the pace of a policy that books departures.
func PaceOf(a headgate.Algorithm, l headgate.Limit) Pace {
	return Pace{Interval: float64(l.Per) / float64(max(l.Count, 1)), Spaced: a == headgate.LeakyBucket}
}

// departure gives the time at which a request can go, by its n units that are the
// next ones of s. It has before units of earlier slots. Rounding is to the later time,
// and exact for a request that takes the slot that was booked for it.
func (p Pace) departure(s *Slot, n, before int64) time.Duration {
	if p.Spaced {
		return s.At + p.ceil(s.used) - p.floor(before)
	}
	return s.At - p.floor(s.left()-n)
}

// unit gives the time of the nth unit that is left of s, counted from 1.
func (p Pace) unit(s *Slot, n int64) time.Duration {
	if p.Spaced {
		return s.At + p.ceil(s.used+n-1)
	}
	return s.At - p.floor(s.left()-n)
}

// passed gives the number of units left of s whose time is before now, or more when
// all of them are.
func (p Pace) passed(s *Slot, now time.Duration) int64 {
	first := p.unit(s, 1)
	switch {
	case now <= first:
		return 0
	case p.Interval <= 0 || p.unit(s, s.left()) < now:
		return s.left()
	default:
		return int64(math.Ceil(float64(now-first) / p.Interval))
	}
}

func (p Pace) floor(units int64) time.Duration {
	return time.Duration(min(float64(units)*p.Interval, math.MaxInt64/4))
}

func (p Pace) ceil(units int64) time.Duration {
	return time.Duration(math.Ceil(min(float64(units)*p.Interval, math.MaxInt64/4)))
}
