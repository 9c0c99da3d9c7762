package memcached

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/headgate/headgate"
)

// digest identifies a key outside of this process: the first 104 bits of its SHA-256. The key
// itself never leaves the process.
//
// The digest is cryptographic because clients choose keys: with a fast hash, a client could compute
// a key that collides with another one. 104 bits leave space in a Receipt's Place for the window
// and the epoch.
type digest [13]byte

func digestOf(key string) digest {
	sum := sha256.Sum256([]byte(key))
	return digest(sum[:13])
}

// name gives the name of the key's item: 22 letters, digits, dashes and underscores.
func (d *digest) name() string {
	var name [32]byte
	b := append(name[:0], prefix...)
	return string(base64.RawURLEncoding.AppendEncode(b, d[:]))
}

// noteOf gives the name of the note that a receipt was returned.
func (d *digest) noteOf(nonce uint64) string { return d.name() + ":r" + strconv.FormatUint(nonce, 36) }

// weight gives 64 bits of the digest, for choosing a server.
func (d *digest) weight() uint64 { return binary.BigEndian.Uint64(d[:8]) }

// place gives the part of a Receipt that identifies its state.
func (d *digest) place(window uint8, epoch uint16) [2]uint64 {
	var p [16]byte
	copy(p[:13], d[:])
	p[13] = window
	binary.BigEndian.PutUint16(p[14:], epoch)
	return [2]uint64{binary.BigEndian.Uint64(p[:8]), binary.BigEndian.Uint64(p[8:])}
}

// placeIn reads a Receipt's Place.
func placeIn(r *headgate.Receipt) (d digest, window uint8, epoch uint16) {
	var p [16]byte
	binary.BigEndian.PutUint64(p[:8], r.Place[0])
	binary.BigEndian.PutUint64(p[8:], r.Place[1])
	return digest(p[:13]), p[13], binary.BigEndian.Uint16(p[14:])
}
