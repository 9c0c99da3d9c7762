package schedule

import "math/bits"

// Sum returns this instance's units of the windows from to to-1, or the largest int64 if the
// sum is larger.
func (p Plan) Sum(from, to int64) int64 {
	if p.Limit <= 0 || p.Instances < 1 || to <= from {
		return 0
	}
	// floor((toR+i)/N) - floor((fromR+i)/N) = floor(((to-from)R + (fromR+i) mod N) / N).
	return scaled(uint64(to-from), uint64(p.Limit), p.rest(from), uint64(p.Instances))
}

// count returns this instance's number of units among the units from to to-1 of window w.
func (p Plan) count(w, from, to int64) int64 {
	if p.Limit <= 0 || p.Instances < 1 {
		return 0
	}
	rest, n := int64(p.rest(w)), int64(p.Instances)
	return (rest+to)/n - (rest+from)/n
}

// rest returns (wR + i) mod N.
func (p Plan) rest(w int64) uint64 {
	n := int64(p.Instances)
	return uint64((modulo(w, n)*(p.Limit%n) + modulo(int64(p.Index), n)) % n)
}

// After returns the window w in which this instance gets unit number need, counted from the
// start of window from. before is the number of units in the windows before w. ok is false if
// no such window begins within 292 years.
func (p Plan) After(from, need int64) (w, before int64, ok bool) {
	if need <= 0 {
		return from, 0, true
	}
	last, ok := p.last(from, need)
	if !ok {
		return 0, 0, false
	}
	return last, p.Sum(from, last), true
}

func (p Plan) last(from, need int64) (w int64, ok bool) {
	if p.Limit <= 0 || p.Instances < 1 || p.Per <= 0 {
		return 0, false
	}
	// Find the smallest k with floor((kR + rest)/N) >= need, which means kR >= need*N - rest.
	hi, lo := bits.Mul64(uint64(need), uint64(p.Instances))
	lo, borrow := bits.Sub64(lo, p.rest(from), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(p.Limit-1), 0)
	return p.within(from, quotient(hi+carry, lo, uint64(p.Limit)))
}

// within returns the k-th window, counted from 1 at from. ok is false if an Instant cannot represent its start.
func (p Plan) within(from, k int64) (w int64, ok bool) {
	last := most/int64(p.Per) - 1
	if k > last || from > last-k+1 {
		return 0, false
	}
	return from + k - 1, true
}
