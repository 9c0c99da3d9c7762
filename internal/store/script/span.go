package script

import (
	"math/bits"
	"time"
)

// span is a time of us microseconds plus part/den of a microsecond, where den belongs to the plan.
// Package limit has a similar span in nanoseconds. lua/number.lua has the same functions.
type span struct {
	us, part int64
}

func (s span) add(t span, den int64) span {
	r := span{s.us + t.us, s.part + t.part}
	if r.part >= den {
		r.part -= den
		r.us++
	}
	return r
}

func (s span) sub(t span, den int64) span {
	r := span{s.us - t.us, s.part - t.part}
	if r.part < 0 {
		r.part += den
		r.us--
	}
	return r
}

// after reports whether s > t.
func (s span) after(t span) bool { return s.us > t.us || s.us == t.us && s.part > t.part }

// ceil rounds s up to whole microseconds.
func (s span) ceil() int64 {
	if s.part > 0 {
		return s.us + 1
	}
	return s.us
}

// spanOf gives the time of n intervals; n must be at most p.most.
func (p *Plan) spanOf(n int64) span {
	hi, lo := bits.Mul64(uint64(n), uint64(p.interval.part))
	us, rest := bits.Div64(hi, lo, uint64(p.den))
	return span{n*p.interval.us + int64(us), int64(rest)}
}

// wholeUnits gives the number of whole intervals within s. s must be between 0 and p.refill.
func (p *Plan) wholeUnits(s span) int64 {
	hi, lo := bits.Mul64(uint64(s.us), uint64(p.den))
	lo, carry := bits.Add64(lo, uint64(s.part), 0)
	// The quotient is at most p.most, so it cannot overflow.
	q, _ := bits.Div64(hi+carry, lo, p.num)
	return int64(q)
}

// freeOf gives the microsecond at which the sub-window of t expires: the start of the (N+1)th
// sub-window after it.
func (p *Plan) freeOf(t int64) int64 {
	per, n := uint64(p.per), uint64(p.policy.SubWindows)
	whole, rest := uint64(t)/per, uint64(t)%per
	k := rest*n/per + n + 1 // the sub-window in which t expires, counted within the period; rest x n is below 2^53
	whole, k = whole+k/n, k%n
	return int64(whole*per + (k*per+n-1)/n)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
