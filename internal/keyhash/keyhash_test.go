package keyhash_test

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/keyhash"
)

// TestSeed tells what a seed is for: two hashes with one seed agree, also in another process. Two secrets differ.
func TestSeed(t *testing.T) {
	t.Parallel()
	a, b, c := keyhash.New(7), keyhash.New(7), keyhash.New(8)
	if a.String("client") != b.String("client") || a.Pair("a", "b") != b.Pair("a", "b") {
		t.Error("one seed gives two hashes")
	}
	if a.String("client") == c.String("client") {
		t.Error("two seeds give one hash")
	}
	if got := a.String("client"); got != 0xaab30ac86105ece2 {
		t.Errorf("the hash of a seed is another one than before: %#x", got)
	}
	x, y := keyhash.New(0), keyhash.New(0)
	first := x.String("client")
	if first == y.String("client") || first != x.String("client") {
		t.Error("two secrets give one hash, or one secret gives two")
	}
	for _, h := range []keyhash.Hash{a, x} {
		if h.Pair("ab", "c") == h.Pair("a", "bc") || h.Pair("a", "") == h.Pair("", "a") {
			t.Error("two pairs have one hash")
		}
	}
}

// TestSpread: similar keys get hashes without a collision, and each bit of a hash is set for about half of the keys.
func TestSpread(t *testing.T) {
	t.Parallel()
	h := keyhash.New(1)
	const keys = 100_000
	seen, set := map[uint64]bool{}, [64]int{}
	for i := range keys {
		// Keys of each length modulo eight, which differ in few bits.
		sum := h.String(strings.Repeat("k", i%9) + strconv.Itoa(i))
		seen[sum] = true
		for rest := sum; rest != 0; rest &= rest - 1 {
			set[bits.TrailingZeros64(rest)]++
		}
	}
	if len(seen) < keys-9 {
		t.Errorf("%d keys have %d hashes", keys, len(seen))
	}
	for bit, n := range set {
		if n < keys*48/100 || n > keys*52/100 {
			t.Errorf("bit %d is set in %d of %d hashes", bit, n, keys)
		}
	}
}

// TestNothingIsAllocated: a hash of either kind allocates nothing.
func TestNothingIsAllocated(t *testing.T) {
	for _, h := range []keyhash.Hash{keyhash.New(0), keyhash.New(1)} {
		if n := testing.AllocsPerRun(100, func() { _ = h.String("a key of some length") ^ h.Pair("a client", "an id") }); n != 0 {
			t.Errorf("a hash allocates %v times", n)
		}
	}
}
