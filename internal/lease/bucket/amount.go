package bucket

import (
	"math"
	"math/bits"
	"time"
)

// parts is the number of parts of a unit: a rate of 1/1000 units a second fills one part in a nanosecond.
const parts = 1_000_000_000_000

// amount is a number of units, in parts of a unit: whole units, which may be negative, and 0 to parts-1 parts.
type amount struct {
	whole int64
	part  uint64
}

func (a amount) less(b amount) bool {
	return a.whole < b.whole || a.whole == b.whole && a.part < b.part
}

// filled returns what a rate fills in some nanoseconds, at most as many units as most. All are at least 0.
func filled(rate int64, d time.Duration, most int64) amount {
	hi, lo := bits.Mul64(uint64(rate), uint64(d))
	if hi >= parts {
		return amount{most, 0}
	}
	whole, part := bits.Div64(hi, lo, parts)
	if whole >= uint64(most) {
		return amount{most, 0}
	}
	return amount{int64(whole), part}
}

func (a amount) add(b amount) amount {
	sum := amount{a.whole + b.whole, a.part + b.part}
	if sum.part >= parts {
		sum.whole, sum.part = sum.whole+1, sum.part-parts
	}
	return sum
}

// sub returns a - b.
func (a amount) sub(b amount) amount {
	left := amount{a.whole - b.whole, a.part}
	if left.part < b.part {
		left.whole, left.part = left.whole-1, left.part+parts
	}
	left.part -= b.part
	return left
}

// forever is the time of a rate of 0.
const forever = time.Duration(math.MaxInt64)

// at returns the time in which a rate fills the amount, rounded up.
func (a amount) at(rate int64) time.Duration {
	switch {
	case a.whole < 0 || a == amount{}:
		return 0
	case rate <= 0:
		return forever
	}
	hi, lo := bits.Mul64(uint64(a.whole), parts)
	lo, carry := bits.Add64(lo, a.part, 0)
	if hi += carry; hi >= uint64(rate) {
		return forever
	}
	d, rest := bits.Div64(hi, lo, uint64(rate))
	if rest > 0 {
		d++
	}
	return time.Duration(min(d, uint64(forever)))
}
