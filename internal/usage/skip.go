package usage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
	// shortest is the length up to which a loop over bytes is faster than bytes.IndexByte.
	shortest = 40
)

// shortText is the length of a string that ends in the piece and has no escapes; -1 for others and for long ones.
func shortText(b []byte) int {
	for i, c := range b[:min(len(b), shortest)] {
		if c == '"' {
			return i
		}
		if c == '\\' {
			return -1
		}
	}
	return -1
}

// skipString skips to the end of a string, and reports whether the end is in the piece.
func (d *document) skipString(b []byte) (n int, done bool) {
	i := 0
	if d.escape {
		i, d.escape = 1, false
	} else if k := shortText(b); k >= 0 {
		return k + 1, true
	}
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			d.escape = trailingEscapes(b[i:])&1 == 1
			return len(b), false
		}
		if trailingEscapes(b[i:i+j])&1 == 0 {
			return i + j + 1, true
		}
		i += j + 1
	}
}

// trailingEscapes counts the backslashes at the end.
func trailingEscapes(b []byte) int {
	k := len(b)
	for k > 0 && b[k-1] == '\\' {
		k--
	}
	return len(b) - k
}

// zeroBytes has the top bit of each byte of x that is 0. Bytes above the lowest may be wrong, so that only the lowest counts.
func zeroBytes(x uint64) uint64 { return (x - eachByte) &^ x & topBits }

// plain counts the bytes at the begin that are no quotes and brackets, eight at once. The count may stop early, less than eight bytes
// before the end.
func plain(b []byte) int {
	i := 0
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		lower := w | eachByte*0x20 // brackets become braces
		if m := zeroBytes(lower^eachByte*'{') | zeroBytes(lower^eachByte*'}') | zeroBytes(w^eachByte*'"'); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	return i
}

// skipContainer skips in an object or array that no path enters: only brackets and quotes count.
func (d *document) skipContainer(b []byte) int {
	for i := 0; i < len(b); {
		i += plain(b[i:])
		if i == len(b) {
			break
		}
		c := b[i]
		i++
		switch c {
		case '"':
			d.escape = false
			n, done := d.skipString(b[i:])
			i += n
			if !done {
				d.state, d.inside = inSkippedTxt, true
				return i
			}
		case '{', '[':
			d.skip++
		case '}', ']':
			d.skip--
			if d.skip == 0 {
				d.ended()
				return i
			}
		}
	}
	return len(b)
}
