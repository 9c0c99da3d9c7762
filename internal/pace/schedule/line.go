package schedule

// Line spreads the permits of one window. Permit k, from 0, opens at Phase + k*Length/Part.
// All times are nanoseconds since the beginning of the window.
//
// A Line with Length 0 opens all permits at the start. A Line is not safe for concurrent
// use.
type Line struct {
	Part   int64
	Length int64 // the time over which the permits open: a window's length, or less
	Phase  int64 // the time at which the first permit opens
	// Credit is the maximum number of unused permits that stay open. The minimum is 1.
	// Credit limits the burst after a time without callers.
	Credit int64

	lapsed int64 // permits that expired unused
}

// Open returns the total number of permits that may have been given by elapsed, including
// the given ones. Call [Line.Idle] before Open if no caller waits.
func (l *Line) Open(elapsed int64) int64 {
	if l.Length <= 0 {
		return max(l.Part, 0)
	}
	return min(max(l.turns(elapsed)-l.lapsed, 0), max(l.Part, 0))
}

// Idle expires open permits beyond the credit, because no caller has waited until elapsed.
// given is the number of permits that have been given. The remaining permits keep opening at
// the same pace, also after Length if the window lasts longer.
func (l *Line) Idle(elapsed, given int64) {
	if l.Length <= 0 {
		return
	}
	if left := l.turns(elapsed) - l.lapsed; left > 0 {
		l.lapsed += max(left-max(given, 0)-max(l.Credit, 1), 0)
	}
}

// turns returns the number of opening times that have passed, which may be more than Part.
func (l *Line) turns(elapsed int64) int64 {
	if elapsed < l.Phase || l.Part <= 0 {
		return 0
	}
	return plus(1, scaled(uint64(elapsed-l.Phase), uint64(l.Part), 0, uint64(l.Length)))
}

// When returns the earliest time at which a total of n permits may have been given. n is at
// least 1 and at most Part.
func (l *Line) When(n int64) int64 {
	if l.Length <= 0 || l.Part <= 0 {
		return 0
	}
	k := uint64(max(n, 1)-1) + uint64(l.lapsed)
	return plus(l.Phase, scaled(k, uint64(l.Length), uint64(l.Part-1), uint64(l.Part)))
}
