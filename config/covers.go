package config

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// checkWindows finds limits that can never decide anything because of another
// limit of the same rule.
func (s *section) checkWindows(l limits) {
	for i, p := range l.policies {
		for j, other := range l.policies {
			switch {
			case i > j && p.Limit.Per == other.Limit.Per:
				s.fault(l.values[i], fmt.Sprintf("the period %s stands twice", p.Limit.Period()), "leave the greater limit out")
			case i != j && p.Limit.Per != other.Limit.Per && covers(other, p):
				s.fault(l.values[i],
					fmt.Sprintf("%s is never reached: %s allows no more in a longer time", p.Limit, other.Limit), "leave it out")
			}
		}
	}
}

// covers reports whether a request that passes wide surely passes narrow, when all
// that narrow counts is counted by wide too: not more units, over no shorter a
// period. Both are of one algorithm.
func covers(wide, narrow headgate.Policy) bool {
	w, n := wide.Limit, narrow.Limit
	if w.Count > n.Count || w.Per < n.Per || n.Count == 0 && w.Per != n.Per {
		return false
	}
	switch wide.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return limit.Room(wide) <= limit.Room(narrow)
	case headgate.FixedWindow:
		// Windows stand as they please: the longer one must hold the shorter one whole.
		return w.Per%n.Per == 0
	case headgate.SlidingWindow:
		return coversWindow(wide, narrow)
	default:
		return true
	}
}

// coversWindow is covers for sliding windows, which count what is up to one
// sub-window older than the period, in part. The longer one counts all of that
// whole, or with no less weight, when it is twice as long. With one sub-window, of
// which the weight begins to fall at once, it takes windows that begin together as well.
func coversWindow(wide, narrow headgate.Policy) bool {
	w, n := wide.Limit.Per, narrow.Limit.Per
	if wide.SubWindows != narrow.SubWindows {
		return false
	}
	return w == n || w/2 >= n && (w%n == 0 || wide.SubWindows > 1)
}

// mostWithin gives the most units that somebody who keeps to the limit makes within
// d, at most MaxUnits: what passes at once, or what the time allows in the long run,
// whichever is more. A window that is begun counts whole.
func mostWithin(p headgate.Policy, d time.Duration) int64 {
	times, per := uint64(d), uint64(p.Limit.Per)
	if p.Algorithm != headgate.TokenBucket && p.Algorithm != headgate.LeakyBucket {
		times, per = (times+per-1)/per, 1
	}
	hi, lo := bits.Mul64(uint64(p.Limit.Count), times)
	if hi >= per {
		return headgate.MaxUnits
	}
	units, _ := bits.Div64(hi, lo, per)
	return max(limit.Room(p), int64(min(units, headgate.MaxUnits)))
}
