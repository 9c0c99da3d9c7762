package schedule

// Braked gives this instance's units of window w when only so many percent of the limit
// may go: never more than [Plan.Part], and of all instances floor(limit*percent/100)
// together, but at least 1 while the limit and percent are above 0.
//
// Which units go changes from window to window, so that nobody whose units are few
// stays without: an instance of an even division has, in any number of whole rounds
// of N/gcd(R,N) windows, less than one unit more or less than its even part of what goes.
func (p Plan) Braked(w int64, percent int) int64 {
	switch {
	case percent <= 0 || p.Limit <= 0 || p.Instances < 1:
		return 0
	case percent >= 100:
		return p.Part(w)
	}
	going := max(p.Limit*int64(percent)/100, 1)
	if p.sums != nil {
		return p.brakedTurn(w, going)
	}
	// In a round every instance has each of its unit numbers once. In each round the
	// units that go begin where those of the round before ended.
	n := int64(p.Instances)
	divisor, _ := euclid(p.Limit, n)
	round := quotientDown(w, n/divisor)
	first := product(modulo(round, p.Limit), going, p.Limit)
	if end := first + going; end > p.Limit {
		return p.count(w, first, p.Limit) + p.count(w, 0, end-p.Limit)
	}
	return p.count(w, first, first+going)
}

// brakedTurn spreads what goes over the units of the window, which are numbered by
// instance: unit x goes when (x*going + shift) mod limit >= limit - going. Over the
// windows in the same place of limit turns every shift comes once.
func (p Plan) brakedTurn(w, going int64) int64 {
	from, to := p.places(w)
	turn := quotientDown(w, p.windows())
	shift := product((modulo(turn, p.Limit)+p.place(w))%p.Limit, primeTo(p.Limit)%p.Limit, p.Limit)
	before := scaled(uint64(from), uint64(going), uint64(shift), uint64(p.Limit))
	return scaled(uint64(to), uint64(going), uint64(shift), uint64(p.Limit)) - before
}
