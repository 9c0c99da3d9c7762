package schedule

// Braked returns this instance's units of window w when a brake allows only a percentage of
// the limit. The units are never more than [Plan.Part]. All instances together have
// floor(limit*percent/100) units, but at least 1 if the limit and percent are above 0.
//
// The allowed units change from window to window, so that instances with few units also get
// some. Consider any number of whole rounds of N/gcd(R,N) windows. In
// these, each instance's units differ by less than one from its even part of all allowed units.
func (p Plan) Braked(w int64, percent int) int64 {
	switch {
	case percent <= 0 || p.Limit <= 0 || p.Instances < 1:
		return 0
	case percent >= 100:
		return p.Part(w)
	}
	going := max(p.Limit*int64(percent)/100, 1)
	// In a round, every instance has each of its unit numbers once. The allowed units of a
	// round begin where the allowed units of the round before ended.
	n := int64(p.Instances)
	divisor := greatestDivisor(p.Limit, n)
	round := quotientDown(w, n/divisor)
	first := product(modulo(round, p.Limit), going, p.Limit)
	if end := first + going; end > p.Limit {
		return p.count(w, first, p.Limit) + p.count(w, 0, end-p.Limit)
	}
	return p.count(w, first, first+going)
}
