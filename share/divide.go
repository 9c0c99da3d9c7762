package share

import "slices"

// Divide is Terms.Divide. What it gives holds until the Scratch is used again.
func (s *Scratch) Divide(t Terms, clients []Client) []int64 {
	t.Capacity = min(max(t.Capacity, 0), MaxCapacity)
	t.Reservation = min(max(t.Reservation, 0), 100)
	s.empty(len(clients))
	if len(clients) == 0 {
		return s.sizes
	}
	b := basisOf(t, clients)
	surplus, deficit := b.gaps(clients)
	switch {
	case !surplus.less(deficit):
		s.enough(t, b, surplus, deficit, clients)
	case t.Division == Loan:
		s.loan(t, b, surplus, deficit, clients)
	default:
		s.maxMin(t, b, clients)
	}
	return s.sizes
}

// Default is the function Default. What it gives holds until the Scratch is used again.
func (s *Scratch) Default(capacity int64, clients []Client) []int64 {
	capacity = min(max(capacity, 0), MaxCapacity)
	s.empty(len(clients))
	if len(clients) == 0 {
		return s.sizes
	}
	s.begin(capacity, product(1, totalWeight(clients)).quad())
	for i := range clients {
		s.give(i, product(uint64(capacity), clients[i].weight()).quad())
	}
	s.finish(clients)
	return s.sizes
}

func totalWeight(clients []Client) uint64 {
	var sum uint64
	for i := range clients {
		sum += clients[i].weight()
	}
	return sum
}

// basis turns what a client has and wants into whole numbers: it counts in parts, of
// which scale are a unit.
type basis struct {
	scale    uint64 // 100 x the sum of the weights
	fair     uint64 // x a weight: the default share, in parts
	reserved uint64 // x a weight: what is reserved of it, in parts
}

func basisOf(t Terms, clients []Client) basis {
	capacity := uint64(t.Capacity)
	return basis{scale: 100 * totalWeight(clients), fair: 100 * capacity, reserved: uint64(t.Reservation) * capacity}
}

// of gives a client's default share and its claim (demand, and at least what is
// reserved), both in parts.
func (b basis) of(c *Client) (fair, claim double) {
	claim = product(b.scale, c.demand())
	if reserved := product(b.reserved, c.weight()); claim.less(reserved) {
		claim = reserved
	}
	return product(b.fair, c.weight()), claim
}

// gaps adds up what the lenders leave of their default shares, and what the
// borrowers claim beyond theirs, in parts.
func (b basis) gaps(clients []Client) (surplus, deficit double) {
	for i := range clients {
		if fair, claim := b.of(&clients[i]); claim.less(fair) {
			surplus = surplus.plus(fair.minus(claim))
		} else {
			deficit = deficit.plus(claim.minus(fair))
		}
	}
	return surplus, deficit
}

// enough divides a capacity that all claims fit in: each is met, and the lenders
// have what is left, by gap. It is the same in every division.
func (s *Scratch) enough(t Terms, b basis, surplus, deficit double, clients []Client) {
	left := surplus.minus(deficit)
	if surplus == (double{}) { // No gaps: every claim is the default share.
		surplus = double{lo: 1}
	}
	s.begin(t.Capacity, surplus.times(double{lo: b.scale}))
	for i := range clients {
		fair, claim := b.of(&clients[i])
		size := claim.times(surplus)
		if claim.less(fair) {
			size = size.plus(fair.minus(claim).times(left))
		}
		s.give(i, size)
	}
	s.finish(clients)
}

// loan divides a capacity that is too small for all claims: the lenders' are met,
// and the borrowers have what these leave, by gap.
func (s *Scratch) loan(t Terms, b basis, surplus, deficit double, clients []Client) {
	s.begin(t.Capacity, deficit.times(double{lo: b.scale}))
	for i := range clients {
		fair, claim := b.of(&clients[i])
		if claim.less(fair) {
			s.give(i, claim.times(deficit))
		} else {
			s.give(i, fair.times(deficit).plus(claim.minus(fair).times(surplus)))
		}
	}
	s.finish(clients)
}

// maxMin divides a capacity that is too small for all claims by filling them up to
// one level.
func (s *Scratch) maxMin(t Terms, b basis, clients []Client) {
	all := product(uint64(t.Capacity), b.scale)
	s.claims = slices.Grow(s.claims[:0], len(clients))
	for i := range clients {
		_, claim := b.of(&clients[i])
		s.claim(i, clients[i].weight(), claim, all)
	}
	s.fill(t.Capacity, b.scale, clients)
}
