package share

import "math/bits"

// double is a whole number below 2^128. The caller must prevent overflow: doc.go shows
// that all sums and products fit.
type double struct{ hi, lo uint64 }

// product returns a x b.
func product(a, b uint64) double {
	hi, lo := bits.Mul64(a, b)
	return double{hi, lo}
}

func (a double) less(b double) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a double) plus(b double) double {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return double{a.hi + b.hi + carry, lo}
}

// minus returns a - b, for b at most a.
func (a double) minus(b double) double {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return double{a.hi - b.hi - borrow, lo}
}

// by returns a x b, for a product below 2^128.
func (a double) by(b uint64) double {
	p := product(a.lo, b)
	p.hi += a.hi * b
	return p
}

// times returns a x b.
func (a double) times(b double) quad {
	low, cross, other, high := product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)
	q := quad{high.hi, high.lo, low.hi, low.lo}
	return q.plus(quad{0, cross.hi, cross.lo, 0}).plus(quad{0, other.hi, other.lo, 0})
}

func (a double) quad() quad { return quad{0, 0, a.hi, a.lo} }

// quad is a whole number below 2^256, in words of 64 bits, highest first.
type quad struct{ w3, w2, w1, w0 uint64 }

func (q quad) plus(o quad) quad {
	var carry uint64
	q.w0, carry = bits.Add64(q.w0, o.w0, 0)
	q.w1, carry = bits.Add64(q.w1, o.w1, carry)
	q.w2, carry = bits.Add64(q.w2, o.w2, carry)
	q.w3, _ = bits.Add64(q.w3, o.w3, carry)
	return q
}

// minus returns q - o modulo 2^256.
func (q quad) minus(o quad) quad {
	var borrow uint64
	q.w0, borrow = bits.Sub64(q.w0, o.w0, 0)
	q.w1, borrow = bits.Sub64(q.w1, o.w1, borrow)
	q.w2, borrow = bits.Sub64(q.w2, o.w2, borrow)
	q.w3, _ = bits.Sub64(q.w3, o.w3, borrow)
	return q
}

// up returns q x 2^(64 x words + n), for words below 3, n below 64, and a product below 2^256.
func (q quad) up(words, n uint) quad {
	p := q
	switch words {
	case 1:
		p = quad{q.w2, q.w1, q.w0, 0}
	case 2:
		p = quad{q.w1, q.w0, 0, 0}
	}
	back := 64 - n // A shift by 64 gives 0.
	return quad{p.w3<<n | p.w2>>back, p.w2<<n | p.w1>>back, p.w1<<n | p.w0>>back, p.w0 << n}
}

// divisor divides many numbers by the same divisor.
type divisor struct {
	unit     quad // the divisor, shifted up until bit 191 is set
	words, n uint // the size of that shift: see quad.up
}

// divisorOf prepares to divide by q: 1 to 2^192 - 1.
func divisorOf(q quad) divisor {
	var d divisor
	for d.unit = q; d.unit.w2 == 0 && d.words < 2; d.words++ {
		d.unit = d.unit.up(1, 0)
	}
	d.n = uint(bits.LeadingZeros64(d.unit.w2))
	d.unit = d.unit.up(0, d.n)
	return d
}

// divide returns the quotient of q, which must be below 2^63, and the remainder. The
// remainder is below 2^192 and is shifted up as the divisor is.
//
// This is one step of long division in words (Knuth, The Art of Computer Programming,
// volume 2, section 4.3.1, algorithm D). The first two words of the number, divided by the
// first word of the divisor, give the quotient or at most 2 more. The top bit of the divisor
// is set.
func (d *divisor) divide(q quad) (quotient uint64, rest quad) {
	q = q.up(d.words, d.n)
	quotient, _ = bits.Div64(q.w3, q.w2, d.unit.w2)
	low, middle, high := product(d.unit.w0, quotient), product(d.unit.w1, quotient), product(d.unit.w2, quotient)
	back := quad{high.hi, high.lo, low.hi, low.lo}.plus(quad{0, middle.hi, middle.lo, 0})
	rest = q.minus(back)
	for rest.w3 != 0 { // The remainder is negative, by at most two divisors.
		quotient--
		rest = rest.plus(d.unit)
	}
	return quotient, rest
}
