package memcached

import (
	"crypto/sha256"
	"encoding/binary"
)

// serverOf gives the server of a key: the one with the highest score. The score depends only on the
// key and the server's address. So all processes agree, in whatever order they list the servers.
// When a server is added or removed, only its own keys move (rendezvous hashing: Thaler and
// Ravishankar, 1998).
func (s *Store) serverOf(d *digest) *node {
	all := s.servers()
	best, highest := all[0], uint64(0)
	for _, n := range all {
		if score := mix(d.weight() ^ n.seed); score >= highest {
			best, highest = n, score
		}
	}
	return best
}

// seedOf gives the part of the score that depends on a server's address.
func seedOf(addr string) uint64 {
	sum := sha256.Sum256([]byte(addr))
	return binary.BigEndian.Uint64(sum[:8])
}

// mix spreads the bits of x evenly: each bit of x changes half of the bits of the result (the
// finalizer of SplitMix64: Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
