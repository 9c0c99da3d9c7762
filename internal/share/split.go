package share

import "slices"

// Proportional divides amount among wants in proportion to their Demands. No client gets
// more than its Demand. The sum is exactly the smaller of amount and the sum of the
// Demands. It ignores Weights. An amount below 0 counts as 0. The result is in the order
// of wants, and is valid until the next use of the Scratch.
func (s *Scratch) Proportional(amount int64, wants []Client) []int64 {
	s.empty(len(wants))
	sum, scarce := s.meet(amount, wants)
	if !scarce {
		return s.sizes
	}
	amount = max(amount, 0)
	s.begin(amount, sum.quad())
	for i := range wants {
		s.give(i, product(uint64(amount), wants[i].demand()).quad())
	}
	s.finish(wants)
	return s.sizes
}

// Fill divides amount among wants by weighted water-filling: small Demands are met first.
// Clients with unmet Demands get equal amounts per unit of Weight. No client gets more
// than its Demand. The sum is exactly the smaller of amount and the sum of the Demands.
// An amount below 0 counts as 0. The result is in the order of wants, and is valid until
// the next use of the Scratch.
func (s *Scratch) Fill(amount int64, wants []Client) []int64 {
	s.empty(len(wants))
	if _, scarce := s.meet(amount, wants); !scarce {
		return s.sizes
	}
	amount = max(amount, 0)
	s.claims = slices.Grow(s.claims[:0], len(wants))
	for i := range wants {
		s.claim(i, wants[i].weight(), double{lo: wants[i].demand()}, double{lo: uint64(amount)})
	}
	s.fill(amount, 1, wants)
	return s.sizes
}

// meet gives each client its Demand. It returns the sum of the Demands, and reports whether
// that sum exceeds amount.
func (s *Scratch) meet(amount int64, wants []Client) (sum double, scarce bool) {
	for i := range wants {
		demand := wants[i].demand()
		s.sizes[i] = int64(demand)
		sum = sum.plus(double{lo: demand})
	}
	return sum, double{lo: uint64(max(amount, 0))}.less(sum)
}
