package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
)

// place is where a key's state lies: 120 bits of a digest of the key, and the
// number of the window in the last byte. It fits a Receipt's Place.
//
// The digest is cryptographic because clients choose keys: with a fast hash one
// client could compute a key that meets another's. It costs 100 ns, next to a
// round trip.
type place [16]byte

func placeOf(key string, window uint8) place {
	var p place
	sum := sha256.Sum256([]byte(key))
	copy(p[:15], sum[:])
	p[15] = window
	return p
}

// words gives the place as a Receipt holds it.
func (p *place) words() [2]uint64 {
	return [2]uint64{binary.BigEndian.Uint64(p[:8]), binary.BigEndian.Uint64(p[8:])}
}

func placeIn(words [2]uint64) place {
	var p place
	binary.BigEndian.PutUint64(p[:8], words[0])
	binary.BigEndian.PutUint64(p[8:], words[1])
	return p
}

// name gives the state's key: the version of the state's form, the digest as the
// cluster's hash tag, so that all windows of a key share a slot, and the window.
// No character of it is a client's.
func (p *place) name() string {
	var name [32]byte
	b := append(name[:0], "hg1:{"...)
	b = base64.RawURLEncoding.AppendEncode(b, p[:15])
	b = append(b, "}:"...)
	return string(strconv.AppendUint(b, uint64(p[15]), 10))
}

// listOf names the list of a sliding log's entries.
func listOf(name string) string { return name + ":log" }

// noteOf names the note that a receipt was returned.
func noteOf(name string, nonce uint64) string { return name + ":r" + strconv.FormatUint(nonce, 36) }
