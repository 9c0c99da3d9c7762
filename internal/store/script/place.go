package script

import (
	"crypto/sha256"
	"encoding/binary"
)

// Place is where a key's state lies: 120 bits of a digest of the key, and the number
// of the window in the last byte. It fits a Receipt's Place.
//
// The digest is cryptographic because clients choose keys: with a fast hash one
// client could compute a key that meets another's. It costs 100 ns, next to a
// round trip.
type Place [digestBytes + 1]byte

const digestBytes = 15

// PlaceOf gives the place of a key's state in a window.
func PlaceOf(key string, window uint8) Place {
	var p Place
	sum := sha256.Sum256([]byte(key))
	copy(p[:digestBytes], sum[:])
	p[digestBytes] = window
	return p
}

// PlaceIn gives the place whose Words these are.
func PlaceIn(words [2]uint64) Place {
	var p Place
	binary.BigEndian.PutUint64(p[:8], words[0])
	binary.BigEndian.PutUint64(p[8:], words[1])
	return p
}

// Words gives the place as a Receipt holds it.
func (p Place) Words() [2]uint64 {
	return [2]uint64{binary.BigEndian.Uint64(p[:8]), binary.BigEndian.Uint64(p[8:])}
}
