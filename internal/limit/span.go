package limit

import (
	"math/bits"
	"time"
)

// span is a time of ns nanoseconds and part/den of a nanosecond. den belongs to the
// plan, and part < den. So multiples of the emission interval are exact.
type span struct {
	ns   int64
	part uint64
}

// add returns s + t. den is at most MaxUnits, so the parts cannot overflow.
func (s span) add(t span, den uint64) span {
	r := span{s.ns + t.ns, s.part + t.part}
	if r.part >= den {
		r.part -= den
		r.ns++
	}
	return r
}

// sub returns s - t. ns is negative if t is larger.
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

// ceil returns s, rounded up to whole nanoseconds.
func (s span) ceil() time.Duration {
	if s.part > 0 {
		return time.Duration(s.ns + 1)
	}
	return time.Duration(s.ns)
}

// spanOf returns the time of n intervals, for n up to the plan's burst.
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

// wholeUnits returns the number of whole intervals within s. s has the bounds of unitsIn.
func (p *Plan) wholeUnits(s span) int64 {
	if p.step > 0 {
		return p.wholeSteps(s.ns) // The fraction of a nanosecond cannot complete an interval.
	}
	return p.unitsIn(s)
}

// wholeSteps is wholeUnits for a plan whose interval is a whole number of nanoseconds. The
// multiplication by 2^64/step takes a third of the time of a division. Its result is
// too low by at most one.
func (p *Plan) wholeSteps(ns int64) int64 {
	q, _ := bits.Mul64(uint64(ns), p.inverse)
	if uint64(ns)-q*uint64(p.step) >= uint64(p.step) {
		q++
	}
	return int64(q)
}

// unitsIn returns the number of whole intervals within s, which must be between 0 and the
// horizon.
func (p *Plan) unitsIn(s span) int64 {
	hi, lo := bits.Mul64(uint64(s.ns), p.den)
	lo, carry := bits.Add64(lo, s.part, 0)
	q, _ := bits.Div64(hi+carry, lo, p.num)
	return int64(q)
}
