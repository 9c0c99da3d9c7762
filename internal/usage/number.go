package usage

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNumber bounds values: 2^53 - 1, as headgate.MaxUnits.
const maxNumber = 1<<53 - 1

// Number reads a number of JSON: rounded up to a whole number. Negative numbers, numbers above 2^53 - 1 and what is no number give false.
func Number(b []byte) (v int64, ok bool) {
	if len(b) == 0 || b[0] < '0' || b[0] > '9' {
		return 0, false
	}
	whole := len(b) <= 16
	for i := 0; whole && i < len(b); i++ {
		whole = b[i] >= '0' && b[i] <= '9'
		v = v*10 + int64(b[i]-'0')
	}
	if whole {
		return v, v <= maxNumber && (b[0] != '0' || len(b) == 1)
	}
	if !numeric(b) {
		return 0, false
	}
	// The conversion stays on the stack: the compiler sees that ParseFloat keeps the string only in errors, which Number drops.
	x, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsNaN(x) || x > maxNumber {
		return 0, false
	}
	return int64(math.Ceil(x)), true
}

// numeric reports whether b has only characters of numbers of JSON: ParseFloat reads more forms.
func numeric(b []byte) bool {
	if len(b) > 1 && b[0] == '0' && b[1] >= '0' && b[1] <= '9' {
		return false
	}
	for i, c := range b {
		digit := c >= '0' && c <= '9'
		if c == '.' && (i+1 == len(b) || b[i+1] < '0' || b[i+1] > '9') {
			return false
		}
		if !digit && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			return false
		}
	}
	return true
}

// literal takes the number or the literal in the token.
func (d *document) literal() {
	n, b := &d.program.nodes[d.node], d.token[:d.n]
	if n.texts != 0 {
		d.word(n.texts, b)
	}
	if n.numbers == 0 {
		return
	}
	v, ok := Number(b)
	if !ok {
		return
	}
	for f := range d.program.fields {
		if n.numbers&(1<<f) != 0 {
			d.merge(f, v)
		}
	}
}

// merge merges a number into a field.
func (d *document) merge(f int, v int64) {
	bit := uint64(1) << f
	switch kind := d.program.fields[f].Kind; {
	case d.has&bit == 0 || kind == Last:
		d.values[f] = v
	case kind == Max:
		d.values[f] = max(d.values[f], v)
	default:
		d.values[f] = min(d.values[f]+v, maxNumber)
	}
	d.has |= bit
}

// string takes the string in the token.
func (d *document) string() {
	if d.over {
		return
	}
	n, b := &d.program.nodes[d.node], d.token[:d.n]
	var space [maxToken]byte
	if d.escaped {
		b = Unescape(space[:0], b)
	}
	d.word(n.texts, b)
	for f := range d.program.fields {
		if n.texts&(1<<f) != 0 && d.program.fields[f].Kind == Text {
			d.textLen = uint8(copy(d.text[:], b))
			d.has |= 1 << f
		}
	}
}

// word marks the fields that look for a word.
func (d *document) word(fields uint64, b []byte) {
	for f := range d.program.fields {
		if fields&(1<<f) == 0 {
			continue
		}
		for _, w := range d.program.fields[f].Words {
			if w == string(b) {
				d.values[f] = 1
				d.has |= 1 << f
			}
		}
	}
}

// Unescape appends the text of a string of JSON, without its quotes, to dst. The text is never longer than the string.
func Unescape(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			dst = append(dst, b[i])
			continue
		}
		i++
		switch b[i] {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			r, n := escapedRune(b[i-1:])
			dst = utf8.AppendRune(dst, r)
			i += n - 2
		default:
			dst = append(dst, b[i])
		}
	}
	return dst
}

// escapedRune reads \uXXXX, or a surrogate pair of two such escapes, and returns its length.
func escapedRune(b []byte) (r rune, n int) {
	r, ok := hex4(b)
	if !ok {
		return utf8.RuneError, 2
	}
	if utf16.IsSurrogate(r) {
		if second, ok := hex4(b[6:]); ok {
			if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
