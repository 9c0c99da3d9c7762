package schedule

import "math/bits"

const most = 1<<63 - 1 // the largest number

// quotientDown returns floor(a/n), for a positive n.
func quotientDown(a, n int64) int64 {
	q := a / n
	if a%n < 0 {
		q--
	}
	return q
}

// modulo returns a - n*floor(a/n), which is in [0, n), for a positive n.
func modulo(a, n int64) int64 {
	if a %= n; a < 0 {
		a += n
	}
	return a
}

// product returns a*b modulo n, for a and b in [0, n).
func product(a, b, n int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(bits.Rem64(hi, lo, uint64(n)))
}

// scaled returns floor((a*b + c) / n) for a positive n, or the largest int64 if the result
// is larger.
func scaled(a, b, c, n uint64) int64 {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c, 0)
	return quotient(hi+carry, lo, n)
}

// quotient returns hi:lo / n, or the largest int64 if the result is larger.
func quotient(hi, lo, n uint64) int64 {
	if hi >= n {
		return most
	}
	q, _ := bits.Div64(hi, lo, n)
	return int64(min(q, most))
}

// plus returns a + b for a b of at least 0, or the largest int64 if the sum is larger.
func plus(a, b int64) int64 {
	if a > most-b {
		return most
	}
	return a + b
}

// greatestDivisor returns the greatest common divisor of a and b.
func greatestDivisor(a, b int64) int64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}
