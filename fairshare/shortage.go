package fairshare

import "math"

const (
	// spreads is how many standard deviations of what owners may ask for are held.
	spreads = 4
	// tailSpreads is the same of what they are short of, whose tail is heavier.
	tailSpreads = 5
	// reservePart is the part of the capacity that is held at the most: of few units four
	// deviations are nearly all, and nothing would be lent.
	reservePart = 10
)

// shortage is what all owners may ask for beyond what is in their cells. There are two
// bounds of it, and the lesser holds: the first is close for many owners of few units,
// of whom most ask for more than the last of their cells holds, the second for few of
// many.
type shortage struct {
	expected, variance float64 // of what they ask for beyond their cells, those that are covered left out
	short, square      float64 // the mean and the variance of what each is short of
	room               int64   // the most that it can be
}

// add adds that of one owner who asks for X in the rest of the cycle, normal with this
// mean and variance, has owed units in its cell, and room for more. It is short of
// max(0, X - owed). With the density phi and the tail Q of the normal distribution at
// z = (owed - mean) / sd that is
//
//	sd (phi - z Q) on average, and its square sd^2 ((1 + z^2) Q - z phi).
//
// Who is covered by spreads deviations, or asks for nothing at all, needs nothing.
func (s *shortage) add(mean, variance float64, owed, room int64) {
	if variance == 0 {
		return
	}
	sd := math.Sqrt(variance)
	z := (float64(owed) - mean) / sd
	if z > spreads {
		return
	}
	s.room += room
	s.expected += min(float64(room), max(0, -z*sd))
	s.variance += variance
	phi := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	tail := math.Erfc(z/math.Sqrt2) / 2
	short := min(float64(room), sd*(phi-z*tail))
	s.short += short
	s.square += max(0, variance*((1+z*z)*tail-z*phi)-short*short)
}

// most gives how much to hold for all of them together.
func (s *shortage) most() int64 {
	most := min(s.expected+spreads*math.Sqrt(s.variance), s.short+tailSpreads*math.Sqrt(s.square))
	return min(s.room, int64(math.Ceil(most)))
}
