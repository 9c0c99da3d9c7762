package domain

import (
	"crypto/sha256"

	"github.com/headgate/headgate"
)

// A key is the domain, and then for each entry the name, a mark and the value. The domain, a name
// and a value are a text:
//
//	0x00 to 0x80   the length of the text, which follows
//	0xFE           the digest of a longer text follows: digestLength bytes
//
// Every element contains its length, so no value can imitate several elements. Shared stores keep
// such keys: a change of the format invalidates their data.
const (
	maxTextLength = 0x80
	markDigest    = 0xFE
	// markValue precedes the value of the descriptor, and markPattern the wildcard that stands for
	// all of its values.
	markValue   = 0x00
	markPattern = 0x01
	// digestLength is the number of bytes of the SHA-256 in a key. An attacker needs 2^128
	// tries to find another client's value.
	digestLength = 16
)

// AppendKey appends the key under which a descriptor is counted. On levels with share_threshold,
// the wildcard of the node replaces the value. m is the result of Find for the same entries. With
// a nil m, or the zero Match, the key has all values of the descriptor, for a limit that the
// request itself has. Different entries never have the same key, except for shared values.
// AppendKey allocates nothing if dst has enough capacity.
func AppendKey(dst []byte, domain string, entries headgate.Descriptors, m *Match) []byte {
	dst = appendText(dst, domain)
	for i := range entries {
		dst = appendText(dst, entries[i].Name)
		if pattern, shared := m.pattern(i); shared {
			dst = appendText(append(dst, markPattern), pattern)
		} else {
			dst = appendText(append(dst, markValue), entries[i].Value)
		}
	}
	return dst
}

func appendText(dst []byte, text string) []byte {
	if len(text) <= maxTextLength {
		return append(append(dst, byte(len(text))), text...)
	}
	sum := digest(text)
	return append(append(dst, markDigest), sum[:]...)
}

// digest hashes a text piece by piece. Hashing the text at once would copy it to the heap, and
// clients choose its length.
func digest(text string) (short [digestLength]byte) {
	h := sha256.New()
	var piece [256]byte
	for len(text) > 0 {
		n := copy(piece[:], text)
		h.Write(piece[:n])
		text = text[n:]
	}
	var sum [sha256.Size]byte
	copy(short[:], h.Sum(sum[:0]))
	return short
}
