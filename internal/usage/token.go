package usage

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// beginToken begins to collect a name, a text or a scalar.
func (d *document) beginToken(s step) {
	d.step, d.length, d.escaped, d.long, d.odd = s, 0, false, false, false
}

func (d *document) put(c byte) {
	if int(d.length) == len(d.token) {
		d.long = true
		return
	}
	d.token[d.length] = c
	d.length++
}

// collect collects a string with its escapes, and returns the number of bytes. At the end of the string the step is atColon.
func (d *document) collect(b []byte) int {
	for i, c := range b {
		switch {
		case d.odd:
			d.odd = false
		case c == '"':
			d.step = atColon
			return i + 1
		case c == '\\':
			d.odd, d.escaped = true, true
		}
		d.put(c)
	}
	return len(b)
}

// spelled gives the collected string without escapes. It is valid until the next token.
func (d *document) spelled() []byte {
	b := d.token[:d.length]
	if !d.escaped {
		return b
	}
	to := b[:0] // An escape is never shorter than what it stands for.
	for len(b) > 0 {
		c := b[0]
		if c != '\\' || len(b) == 1 {
			to, b = append(to, c), b[1:]
			continue
		}
		r, n := escape(b)
		to, b = utf8.AppendRune(to, r), b[n:]
	}
	return to
}

// escape reads an escape, and returns its length.
func escape(b []byte) (r rune, n int) {
	switch b[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		high, ok := fourDigits(b)
		if !ok {
			return 'u', 2
		}
		if utf16.IsSurrogate(high) {
			low, ok := fourDigits(b[6:])
			if pair := utf16.DecodeRune(high, low); ok && pair != utf8.RuneError {
				return pair, 12
			}
			return utf8.RuneError, 6
		}
		return high, 6
	default:
		return rune(b[1]), 2
	}
}

// fourDigits reads the number of \uXXXX.
func fourDigits(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
