package usage

import (
	"unicode/utf16"
	"unicode/utf8"
)

// The bounds of values.
const (
	// maxNumber bounds whole numbers: 2^53 - 1, as headgate.MaxUnits.
	maxNumber = 1<<53 - 1
	// maxMillionths bounds numbers in millionths.
	maxMillionths = 9_000_000_000_000_000_000
	// maxDigits are the digits of a number that count; those behind only round up.
	maxDigits = 18
)

// Number reads a number of JSON: rounded up to a whole number. Negative numbers, numbers above 2^53 - 1 and what is no number give false.
func Number(b []byte) (v int64, ok bool) { return decimal(b, 0, maxNumber) }

// Millionths reads a number of JSON in millionths, rounded up. Negative numbers, numbers above 9e12 and what is no number give false.
func Millionths(b []byte) (v int64, ok bool) { return decimal(b, 6, maxMillionths) }

// decimal reads a number with so many digits behind the point, rounded up; false if it is above most. It uses no floating point, so that
// it is exact.
func decimal(b []byte, digits int, most uint64) (v int64, ok bool) {
	var m mantissa
	rest := m.read(b)
	if rest == nil || len(b) > 1 && b[0] == '0' && b[1] >= '0' && b[1] <= '9' {
		return 0, false
	}
	if len(rest) > 0 && rest[0] == '.' {
		if rest = m.fraction(rest[1:]); rest == nil {
			return 0, false
		}
	}
	if len(rest) > 0 {
		e, ok := exponent(rest)
		if !ok {
			return 0, false
		}
		m.exponent += e
	}
	n, ok := m.scaled(digits, most)
	return int64(n), ok
}

// mantissa is a number of digits, times a power of ten.
type mantissa struct {
	digits   uint64
	count    int  // of digits
	exponent int  // of ten
	more     bool // a digit that does not count is not 0
}

// read reads the digits at the begin, and returns what follows; nil if there is no digit.
func (m *mantissa) read(b []byte) (rest []byte) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		switch {
		case m.count == maxDigits:
			m.exponent++
			m.more = m.more || b[i] != '0'
		case m.count > 0 || b[i] != '0':
			m.digits = m.digits*10 + uint64(b[i]-'0')
			m.count++
		}
		i++
	}
	if i == 0 {
		return nil
	}
	return b[i:]
}

// fraction reads the digits behind the point.
func (m *mantissa) fraction(b []byte) (rest []byte) {
	if rest = m.read(b); rest != nil {
		m.exponent -= len(b) - len(rest)
	}
	return rest
}

// exponent reads e or E with a number. Large numbers stay large.
func exponent(b []byte) (e int, ok bool) {
	if b[0] != 'e' && b[0] != 'E' || len(b) == 1 {
		return 0, false
	}
	b = b[1:]
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = min(e*10+int(c-'0'), 10_000)
	}
	if negative {
		e = -e
	}
	return e, len(b) > 0
}

// scaled gives the number times a power of ten, rounded up; false if it is above most.
func (m *mantissa) scaled(power int, most uint64) (n uint64, ok bool) {
	n = m.digits
	if n == 0 {
		return 0, true
	}
	up := m.more
	for power += m.exponent; power > 0; power-- {
		if n > most/10 {
			return 0, false
		}
		n *= 10
	}
	for ; power < 0 && n > 0; power++ {
		up = up || n%10 != 0
		n /= 10
	}
	if up {
		n++
	}
	return n, n <= most
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
	for f := range d.program.fields {
		if n.numbers&(1<<f) == 0 {
			continue
		}
		read := Number
		if d.program.fields[f].Fraction {
			read = Millionths
		}
		if v, ok := read(b); ok {
			d.merge(f, v)
		}
	}
}

// merge merges a number into a field.
func (d *document) merge(f int, v int64) {
	bit := uint64(1) << f
	most := int64(maxNumber)
	if d.program.fields[f].Fraction {
		most = maxMillionths
	}
	switch kind := d.program.fields[f].Kind; {
	case d.has&bit == 0 || kind == Last:
		d.values[f] = v
	case kind == Max:
		d.values[f] = max(d.values[f], v)
	default:
		d.values[f] += min(v, most-d.values[f])
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
