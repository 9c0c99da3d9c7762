// Package keyhash hashes keys for tables: under a secret of the process, so that no client can find keys that collide, or
// under a number that is given, so that a simulation gives the same output each time.
package keyhash

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// Hash is a keyed hash. The zero Hash is not ready: New makes one.
type Hash struct {
	secret maphash.Seed
	given  uint64 // 0 for the secret
}

// New returns a hash under a seed, or under a new secret for the seed 0.
func New(seed uint64) Hash {
	if seed == 0 {
		return Hash{secret: maphash.MakeSeed()}
	}
	return Hash{given: seed}
}

// String returns the hash of a string.
func (h *Hash) String(s string) uint64 {
	if h.given != 0 {
		return given(h.given, s)
	}
	return maphash.String(h.secret, s)
}

// Pair returns the hash of two strings, which differs from that of every other pair.
func (h *Hash) Pair(a, b string) uint64 {
	if h.given != 0 {
		return given(given(h.given, a), b)
	}
	var m maphash.Hash
	m.SetSeed(h.secret)
	_, _ = m.WriteString(a) // It never fails.
	_ = m.WriteByte(0)
	_, _ = m.WriteString(b)
	return m.Sum64()
}

// Two odd constants with half of their bits set.
const (
	odd1 = 0x9e3779b97f4a7c15
	odd2 = 0xd6e8feb86659fd93
)

// given hashes a string under a number that is no secret: eight bytes at a time, each mixed in by a product of 128 bits.
func given(seed uint64, s string) uint64 {
	b := unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // because a copy would cost an allocation, and b is only read.
	h := seed ^ uint64(len(b))*odd1
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h^binary.LittleEndian.Uint64(b), odd2)
	}
	var rest uint64
	for i, x := range b {
		rest |= uint64(x) << (8 * i)
	}
	return mix(mix(h^rest, odd2)^seed, odd1)
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^odd1, b)
	return high ^ low
}
