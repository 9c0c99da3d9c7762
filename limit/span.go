package limit

import (
	"math/bits"
	"time"
)

// span is a time of ns nanoseconds and part/den of one more, den being the
// plan's and part < den. So multiples of the emission interval are exact.
type span struct {
	ns   int64
	part uint64
}

// add gives s + t. den is at most MaxUnits, so the parts cannot overflow.
func (s span) add(t span, den uint64) span {
	r := span{s.ns + t.ns, s.part + t.part}
	if r.part >= den {
		r.part -= den
		r.ns++
	}
	return r
}

// sub gives s - t; ns is negative when t is greater.
func (s span) sub(t span, den uint64) span {
	r := span{s.ns - t.ns, s.part - t.part}
	if s.part < t.part {
		r.part += den
		r.ns--
	}
	return r
}

// after reports s > t.
func (s span) after(t span) bool {
	return s.ns > t.ns || s.ns == t.ns && s.part > t.part
}

// ceil gives the least whole time that is not below s.
func (s span) ceil() time.Duration {
	if s.part > 0 {
		return time.Duration(s.ns + 1)
	}
	return time.Duration(s.ns)
}

// spanOf gives the time of n intervals, n at most the burst of the plan.
func (p *Plan) spanOf(n int64) span {
	switch {
	case p.step > 0:
		return span{ns: n * p.step}
	case n == 1:
		return p.interval
	}
	hi, lo := bits.Mul64(uint64(n), p.num)
	ns, part := bits.Div64(hi, lo, p.den)
	return span{int64(ns), part}
}

// wholeUnits gives the whole intervals within s, which is as for unitsIn.
func (p *Plan) wholeUnits(s span) int64 {
	if p.step > 0 {
		return p.wholeSteps(s.ns) // A part of a nanosecond makes no whole interval.
	}
	units, _ := p.unitsIn(s)
	return units
}

// wholeSteps is wholeUnits of a plan whose interval is a whole number of nanoseconds. A
// multiplication by 2^64/step, which is one too low at the most, is a third of the
// time of a division.
func (p *Plan) wholeSteps(ns int64) int64 {
	q, _ := bits.Mul64(uint64(ns), p.inverse)
	if uint64(ns)-q*uint64(p.step) >= uint64(p.step) {
		q++
	}
	return int64(q)
}

// unitsIn gives the whole intervals within s and what is left over in 1/den
// nanoseconds; s is not negative and not above the horizon.
func (p *Plan) unitsIn(s span) (units int64, rest uint64) {
	hi, lo := bits.Mul64(uint64(s.ns), p.den)
	lo, carry := bits.Add64(lo, s.part, 0)
	q, r := bits.Div64(hi+carry, lo, p.num)
	return int64(q), r
}
