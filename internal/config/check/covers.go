package check

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Covers reports whether each request that passes wide also passes narrow, if wide counts every
// request that narrow counts. Both policies must have the same algorithm.
func Covers(wide, narrow headgate.Policy) bool {
	w, n := wide.Limit, narrow.Limit
	if w.Calendar != n.Calendar || w.Calendar != headgate.NoCalendar {
		return w.Count <= n.Count && (w.Count == 0 || containsWindows(w, n))
	}
	if w.Count > n.Count || w.Per < n.Per || n.Count == 0 && w.Per != n.Per {
		return false
	}
	switch wide.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return limit.Room(wide) <= limit.Room(narrow)
	case headgate.FixedWindow:
		// Windows start at multiples of their period: the longer one must contain the shorter one.
		return w.Per%n.Per == 0
	case headgate.SlidingWindow:
		return coversWindow(wide, narrow)
	default:
		return true
	}
}

// containsWindows reports whether each window of n is within one window of w. Weeks, months and
// years of the calendar begin with a day, and years with a month. Other windows begin anywhere.
func containsWindows(w, n headgate.Limit) bool {
	switch {
	case w.Calendar == headgate.NoCalendar || n.Calendar == headgate.NoCalendar:
		return false
	case w.Calendar == n.Calendar || n.Calendar == headgate.Day:
		return true
	default:
		return w.Calendar == headgate.Year && n.Calendar == headgate.Month
	}
}

// coversWindow is Covers for sliding windows. They also count, with a weight below 1, requests
// up to one sub-window older than the period. A window that is at least twice as long counts
// these requests with at least the same weight. With one sub-window, the weight falls from
// the start, so the two windows must also start together.
func coversWindow(wide, narrow headgate.Policy) bool {
	w, n := wide.Limit.Per, narrow.Limit.Per
	if wide.SubWindows != narrow.SubWindows {
		return false
	}
	return w == n || w/2 >= n && (w%n == 0 || wide.SubWindows > 1)
}
