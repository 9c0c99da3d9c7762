package check

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// Covers reports whether a request that passes wide surely passes narrow, when all
// that narrow counts is counted by wide too: not more units, over no shorter a
// period. Both are of one algorithm.
func Covers(wide, narrow headgate.Policy) bool {
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
