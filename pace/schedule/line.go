package schedule

// Line spreads the permits of one window: permit k, from 0, opens Phase + k*Length/Part
// after the window began. All times are nanoseconds since then.
//
// The zero Line, and one of no Length, has all its permits open from the start. A Line
// is for one goroutine at a time.
type Line struct {
	Part   int64
	Length int64 // the time over which the permits open: a window's length, or less
	Phase  int64 // when the first opens
	// Credit is how many permits that nobody wanted stay open, at least 1: a line that
	// has been left alone for a while does not give all that passed at once.
	Credit int64

	lapsed int64 // permits whose turn has passed unused
}

// Open gives how many permits may have been given in all at elapsed, those that have
// been among them. While nobody waits, [Line.Idle] goes before it.
func (l *Line) Open(elapsed int64) int64 {
	if l.Length <= 0 {
		return max(l.Part, 0)
	}
	return min(max(l.turns(elapsed)-l.lapsed, 0), max(l.Part, 0))
}

// Idle lets lapse what has opened by elapsed and is more than the credit beyond given, those
// that have been given: nobody has waited until now. What is left then goes on to open
// at the same pace, and beyond Length if the window lasts longer.
func (l *Line) Idle(elapsed, given int64) {
	if l.Length <= 0 {
		return
	}
	if left := l.turns(elapsed) - l.lapsed; left > 0 {
		l.lapsed += max(left-max(given, 0)-max(l.Credit, 1), 0)
	}
}

// turns gives how many permits' turns have come, be there so many or not.
func (l *Line) turns(elapsed int64) int64 {
	if elapsed < l.Phase || l.Part <= 0 {
		return 0
	}
	return plus(1, scaled(uint64(elapsed-l.Phase), uint64(l.Part), 0, uint64(l.Length)))
}

// When gives the first time at which n permits in all may have been given, for an n of at
// least 1 and at most the part.
func (l *Line) When(n int64) int64 {
	if l.Length <= 0 || l.Part <= 0 {
		return 0
	}
	k := uint64(max(n, 1)-1) + uint64(l.lapsed)
	return plus(l.Phase, scaled(k, uint64(l.Length), uint64(l.Part-1), uint64(l.Part)))
}
