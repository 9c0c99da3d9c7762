package share

import "slices"

// Proportional hands out amount among wants in proportion to their Demands: nobody
// has more than its Demand, and together they have the lesser of amount and the sum
// of the Demands, exactly. Weights are not looked at. An amount below 0 counts as 0.
// What it gives is in the order of wants and holds until the Scratch is used again.
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

// Fill hands out amount among wants by weighted water-filling: small Demands are met
// first, and those that are not have the same for each unit of Weight. Nobody has
// more than its Demand, and together they have the lesser of amount and the sum of
// the Demands, exactly. An amount below 0 counts as 0. What it gives is in the order
// of wants and holds until the Scratch is used again.
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

// meet gives everybody its Demand. It reports whether that is more than amount, and
// the sum.
func (s *Scratch) meet(amount int64, wants []Client) (sum double, scarce bool) {
	for i := range wants {
		demand := wants[i].demand()
		s.sizes[i] = int64(demand)
		sum = sum.plus(double{lo: demand})
	}
	return sum, double{lo: uint64(max(amount, 0))}.less(sum)
}
