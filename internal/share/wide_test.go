package share

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"
)

func (a double) big() *big.Int { return a.quad().big() }

func (q quad) big() *big.Int {
	n := new(big.Int)
	for _, w := range []uint64{q.w3, q.w2, q.w1, q.w0} {
		n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(w))
	}
	return n
}

// edges are words at which carries and estimates are most likely to fail.
var edges = []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1}

func word(r *rand.Rand) uint64 {
	if r.IntN(3) > 0 {
		return edges[r.IntN(len(edges))]
	}
	return r.Uint64() >> r.IntN(64)
}

// TestWide compares sums, products and comparisons with math/big.
func TestWide(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range inputs() {
		a, b, n := double{word(r), word(r)}, double{word(r), word(r)}, word(r)
		equal := func(what string, got, want *big.Int, bits uint) {
			t.Helper()
			if want.BitLen() <= int(bits) && got.Cmp(want) != 0 {
				t.Fatalf("%s of %v, %v and %d: got %d, want %d", what, a, b, n, got, want)
			}
		}
		x, y, z := a.big(), b.big(), new(big.Int).SetUint64(n)
		equal("times", a.times(b).big(), new(big.Int).Mul(x, y), 256)
		equal("by", a.by(n).big(), new(big.Int).Mul(x, z), 128)
		equal("plus", a.plus(b).big(), new(big.Int).Add(x, y), 128)
		equal("plus of four words", a.times(b).plus(b.quad()).big(), new(big.Int).Add(new(big.Int).Mul(x, y), y), 256)
		if a.less(b) != (x.Cmp(y) < 0) {
			t.Fatalf("less of %v and %v: got %v", a, b, a.less(b))
		}
		if !a.less(b) {
			equal("minus", a.minus(b).big(), new(big.Int).Sub(x, y), 128)
		}
	}
}

// TestDivisor divides a multiple of the divisor plus a remainder, for divisors of every
// length. Some of them make the estimated quotient too large by one or two.
func TestDivisor(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	for range inputs() {
		by := quad{0, word(r), word(r), word(r)}
		by = []quad{by, {0, 0, by.w1, by.w0}, {0, 0, 0, by.w0}}[r.IntN(3)]
		if by == (quad{}) {
			continue
		}
		d := divisorOf(by)
		quotient, z := new(big.Int).SetUint64(word(r)>>1), by.big()
		rest := new(big.Int).Mod(quad{0, word(r), word(r), word(r)}.big(), z)
		if r.IntN(4) == 0 {
			rest.Sub(z, big.NewInt(1))
		}
		n := new(big.Int).Add(new(big.Int).Mul(z, quotient), rest)
		got, left := d.divide(quadOf(n))
		rest.Lsh(rest, 64*d.words+d.n)
		if got != quotient.Uint64() || left.big().Cmp(rest) != 0 {
			t.Fatalf("%d / %d: got %d and %d, want %d and %d", n, z, got, left.big(), quotient, rest)
		}
	}
}

func quadOf(n *big.Int) quad {
	b := n.FillBytes(make([]byte, 32))
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return quad{word(0), word(1), word(2), word(3)}
}
