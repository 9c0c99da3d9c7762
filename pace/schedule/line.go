package schedule

import "math/bits"

// Line spreads the permits of one window: permit k, from 0, opens Phase + k*Length/Part
// after the window began. All times are nanoseconds since then.
//
// The zero Line, and one of no Length, has all its permits open from the start.
type Line struct {
	Part   int64
	Length int64 // the time over which the permits open: a window's length, or less
	Phase  int64 // when the first opens
	// Credit is how many permits that nobody wanted stay open, at least 1: a line that
	// has been left alone for a while does not give all that passed at once.
	Credit int64

	skipped int64 // permits whose turn has passed unused
}

// Open gives how many permits may have been given in all at elapsed, when given of
// them have been and somebody waits for the next, so that none has lapsed.
func (l *Line) Open(elapsed int64) int64 {
	if l.Length <= 0 {
		return l.Part
	}
	return min(l.Part, max(l.passed(elapsed)-l.skipped, 0))
}

// Idle lets lapse what has opened by elapsed, beyond the credit, while nobody waited.
func (l *Line) Idle(elapsed, given int64) {
	if l.Length <= 0 {
		return
	}
	if surplus := l.passed(elapsed) - l.skipped - given - max(l.Credit, 1); surplus > 0 {
		l.skipped += surplus
	}
}

// passed gives how many permits' turns have come, be there so many or not.
func (l *Line) passed(elapsed int64) int64 {
	if elapsed < l.Phase || l.Part == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(elapsed-l.Phase), uint64(l.Part))
	return quotient(hi, lo, uint64(l.Length)) + 1
}

// When gives the time at which n permits in all may have been given, for an n of at
// least 1 and at most the part.
func (l *Line) When(n int64) int64 {
	if l.Length <= 0 || l.Part == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n-1+l.skipped), uint64(l.Length))
	lo, carry := bits.Add64(lo, uint64(l.Part-1), 0)
	return l.Phase + quotient(hi+carry, lo, uint64(l.Part))
}
