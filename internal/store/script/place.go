package script

import (
	"crypto/sha256"
	"encoding/binary"
)

// Place identifies the states of a key in a window: 120 bits of a digest of the key, and then the
// number of the window in the last byte. Receipt.Place has the same size.
//
// The digest is cryptographic because clients choose keys. With a fast hash, a client could compute
// a key that collides with the key of another client. The digest costs 100 ns, which is little
// compared with a round trip.
type Place [digestBytes + 1]byte

const digestBytes = 15

// PlaceOf gives the place of a key in a window.
func PlaceOf(key string, window uint8) Place {
	var p Place
	sum := sha256.Sum256([]byte(key))
	copy(p[:digestBytes], sum[:])
	p[digestBytes] = window
	return p
}

// PlaceIn gives the place of a Receipt. It is the inverse of Words.
func PlaceIn(words [2]uint64) Place {
	var p Place
	binary.BigEndian.PutUint64(p[:8], words[0])
	binary.BigEndian.PutUint64(p[8:], words[1])
	return p
}

// Words gives the place in the form of Receipt.Place.
func (p Place) Words() [2]uint64 {
	return [2]uint64{binary.BigEndian.Uint64(p[:8]), binary.BigEndian.Uint64(p[8:])}
}
