package fairshare

import "math"

const (
	// spreads is the number of standard deviations of the owners' demand that the reserve covers.
	spreads = 4
	// tailSpreads is the same for the missing units, whose distribution has a heavier tail.
	tailSpreads = 5
	// The reserve is at most 1/reservePart of the capacity. With few units, four deviations are
	// nearly the whole capacity, and nothing would be lent.
	reservePart = 10
)

// shortage estimates the demand of all owners beyond their cells. It computes two upper
// estimates and uses the smaller. The first is tight for many owners with few units,
// most of which use up their cells. The second is tight for few owners with many units.
type shortage struct {
	expected, variance float64 // of the demand beyond the cells, without covered owners
	short, square      float64 // the sums of mean and variance of each owner's missing units
	room               int64   // upper bound of the shortage
}

// add adds one owner. Its demand X in the rest of the cycle is normal with this mean and
// variance. Its cell has owed units, and it can use at most room more units. It lacks
// max(0, X - owed). With the density phi and the tail Q of the normal distribution at
// z = (owed - mean) / sd, the mean and the mean square are
//
//	sd (phi - z Q) and sd^2 ((1 + z^2) Q - z phi).
//
// An owner that is covered by spreads deviations, or has no demand, needs nothing.
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

// most returns the number of units to reserve for all owners together.
func (s *shortage) most() int64 {
	most := min(s.expected+spreads*math.Sqrt(s.variance), s.short+tailSpreads*math.Sqrt(s.square))
	return min(s.room, int64(math.Ceil(most)))
}
