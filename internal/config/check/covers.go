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
	return limit.CoversUnits(wide, narrow)
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
