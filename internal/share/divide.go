package share

import "slices"

// Divide is Terms.Divide. The result is valid until the next use of the Scratch.
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

// Default is the function Default. The result is valid until the next use of the Scratch.
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

// basis converts shares and claims to whole numbers of parts. scale parts are one unit.
type basis struct {
	scale    uint64 // 100 x the sum of the weights
	fair     uint64 // the default share per weight, in parts
	reserved uint64 // the reservation per weight, in parts
}

func basisOf(t Terms, clients []Client) basis {
	capacity := uint64(t.Capacity)
	return basis{scale: 100 * totalWeight(clients), fair: 100 * capacity, reserved: uint64(t.Reservation) * capacity}
}

// shareAndClaim returns a client's default share and its claim, in parts. The claim is the demand, or
// the reservation if that is larger.
func (b basis) shareAndClaim(c *Client) (fair, claim double) {
	claim = product(b.scale, c.demand())
	if reserved := product(b.reserved, c.weight()); claim.less(reserved) {
		claim = reserved
	}
	return product(b.fair, c.weight()), claim
}

// gaps returns the sum of the lenders' unused default shares, and the sum of the
// borrowers' claims beyond their default shares, in parts.
func (b basis) gaps(clients []Client) (surplus, deficit double) {
	for i := range clients {
		if fair, claim := b.shareAndClaim(&clients[i]); claim.less(fair) {
			surplus = surplus.plus(fair.minus(claim))
		} else {
			deficit = deficit.plus(claim.minus(fair))
		}
	}
	return surplus, deficit
}

// enough divides a capacity that meets all claims. The lenders get the rest, in proportion
// to their gaps. Both divisions use it.
func (s *Scratch) enough(t Terms, b basis, surplus, deficit double, clients []Client) {
	left := surplus.minus(deficit)
	if surplus == (double{}) { // Without gaps, every claim equals the default share.
		surplus = double{lo: 1}
	}
	s.begin(t.Capacity, surplus.times(double{lo: b.scale}))
	for i := range clients {
		fair, claim := b.shareAndClaim(&clients[i])
		size := claim.times(surplus)
		if claim.less(fair) {
			size = size.plus(fair.minus(claim).times(left))
		}
		s.give(i, size)
	}
	s.finish(clients)
}

// loan divides a capacity that does not meet all claims. Lenders get their claims. Borrowers get
// their default shares, and the surplus in proportion to their gaps.
func (s *Scratch) loan(t Terms, b basis, surplus, deficit double, clients []Client) {
	s.begin(t.Capacity, deficit.times(double{lo: b.scale}))
	for i := range clients {
		fair, claim := b.shareAndClaim(&clients[i])
		if claim.less(fair) {
			s.give(i, claim.times(deficit))
		} else {
			s.give(i, fair.times(deficit).plus(claim.minus(fair).times(surplus)))
		}
	}
	s.finish(clients)
}

// maxMin divides a capacity that does not meet all claims, by filling them up to one level.
func (s *Scratch) maxMin(t Terms, b basis, clients []Client) {
	all := product(uint64(t.Capacity), b.scale)
	s.claims = slices.Grow(s.claims[:0], len(clients))
	for i := range clients {
		_, claim := b.shareAndClaim(&clients[i])
		s.claim(i, clients[i].weight(), claim, all)
	}
	s.fill(t.Capacity, b.scale, clients)
}
