package usage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// shortString is how far plain looks for the end of a string. Behind it, bytes.IndexByte is faster.
const shortString = 40

// plain returns the length of a string that ends within the next bytes and has no escape; -1 for others.
func plain(b []byte) int {
	for i, c := range b[:min(len(b), shortString)] {
		switch c {
		case '"':
			return i
		case '\\':
			return -1
		}
	}
	return -1
}

// leaveString skips to the end of a string.
func (d *document) leaveString(v *values, b []byte) int {
	n, ended := d.skipString(b)
	switch {
	case !ended:
	case d.skipped:
		d.step = inOther
	default:
		d.ended(v)
	}
	return n
}

// skipString skips to the end of a string, and returns the number of bytes. A quote ends the string if an even number of backslashes
// is before it.
func (d *document) skipString(b []byte) (n int, ended bool) {
	from := 0
	if d.odd {
		from, d.odd = 1, false
	}
	if short := plain(b[from:]); short >= 0 {
		return from + short + 1, true
	}
	for {
		quote := bytes.IndexByte(b[from:], '"')
		if quote < 0 {
			d.odd = backslashes(b[from:])&1 == 1
			return len(b), false
		}
		even := backslashes(b[from:from+quote])&1 == 0
		if from += quote + 1; even {
			return from, true
		}
	}
}

// backslashes counts those at the end.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}

const (
	eachByte = 0x0101010101010101
	highBits = eachByte << 7
)

// zeroBytes marks the lowest byte of x that is zero, and perhaps some above it.
func zeroBytes(x uint64) uint64 { return (x - eachByte) &^ x & highBits }

// toBracket returns the position of the next bracket or quote, eight bytes at a time; at most len(b).
func toBracket(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		lower := w | eachByte*0x20 // [ and { differ in this bit, and so do ] and }.
		if m := zeroBytes(lower^eachByte*'{') | zeroBytes(lower^eachByte*'}') | zeroBytes(w^eachByte*'"'); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '{', '}', '[', ']', '"':
			return i
		}
	}
	return i
}

// skipOther skips what is beside the paths.
func (d *document) skipOther(v *values, b []byte) int {
	for i := 0; ; {
		if i += toBracket(b[i:]); i == len(b) {
			return i
		}
		c := b[i]
		i++
		switch c {
		case '"':
			d.odd = false
			n, ended := d.skipString(b[i:])
			if i += n; !ended {
				d.step, d.skipped = inString, true
				return i
			}
		case '{', '[':
			d.other = min(d.other+1, 1<<30)
		case '}', ']':
			if d.other--; d.other == 0 {
				d.ended(v)
				return i
			}
		}
	}
}
