package rule

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// unit is a word for a length of time.
type unit struct {
	word   string
	length time.Duration
}

// durationUnits are the units of Go's durations, and the day. The nanosecond
// stands first: periods of limits leave it out.
var durationUnits = [...]unit{
	{"ns", time.Nanosecond},
	{"us", time.Microsecond},
	{"µs", time.Microsecond}, // U+00B5, the micro sign, as time.Duration prints it
	{"μs", time.Microsecond}, // U+03BC, the Greek letter
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
}

// ParseDuration reads a duration as configurations write it: as Go does ("250ms",
// "1h30m", "1.5h"), and with d for 24 hours. There is no sign. As in Go, a
// fraction is cut at the nanosecond. The error is a *ParseError.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	return durationScan{what: "duration", text: text, units: durationUnits[:]}.total()
}

// durationScan reads one duration from left to right.
type durationScan struct {
	what   string // what the duration is called in errors
	text   string
	units  []unit
	offset int // of text, within the text that the user wrote
}

// total adds up the elements, such as the 1h and the 30m of "1h30m".
func (s durationScan) total() (time.Duration, error) {
	if s.text == "" {
		return 0, s.fault(0, "is empty")
	}
	var sum time.Duration
	for at := 0; at < len(s.text); {
		n, unitAt := scanNumber(s.text, at)
		if n.digits == 0 {
			return 0, s.fault(at, "has no number before "+quote(s.text[at:]))
		}
		word, end := scanWord(s.text, unitAt)
		length, ok := unitLength(s.units, word)
		switch {
		case word == "":
			return 0, s.fault(unitAt, "has no unit after "+quote(s.text[at:unitAt]))
		case !ok:
			return 0, s.fault(unitAt, "has the unknown unit "+quote(word))
		}
		element, ok := n.times(length)
		if !ok || element > math.MaxInt64-sum {
			return 0, s.tooLong(at)
		}
		sum += element
		at = end
	}
	return sum, nil
}

func (s durationScan) fault(at int, problem string) error {
	return &ParseError{
		Problem: fmt.Sprintf("%s %s %s", s.what, quote(s.text), problem),
		Fix:     s.what + " must be like 2s, 10m, 1h or 1d",
		Offset:  s.offset + at,
	}
}

func (s durationScan) tooLong(at int) error {
	return &ParseError{
		Problem: fmt.Sprintf("%s %s is too long to count", s.what, quote(s.text)),
		Fix:     fmt.Sprintf("use at most %dd", math.MaxInt64/(24*time.Hour)),
		Offset:  s.offset + at,
	}
}

func unitLength(units []unit, word string) (time.Duration, bool) {
	for _, u := range units {
		if u.word == word {
			return u.length, true
		}
	}
	return 0, false
}

// number is whole + part/scale.
type number struct {
	whole       uint64
	part, scale uint64
	digits      int
}

// greatestScale keeps part and scale within an uint64; digits below it are below
// a nanosecond of every unit.
const greatestScale = 1e18

// scanNumber reads digits, with a point or without, and gives where they end. A
// whole beyond the greatest duration stays at the greatest uint64.
func scanNumber(text string, at int) (n number, end int) {
	n.scale = 1
	for ; at < len(text) && isDigit(text[at]); at++ {
		digit := uint64(text[at] - '0')
		if n.whole > (math.MaxUint64-digit)/10 {
			n.whole = math.MaxUint64
		} else {
			n.whole = n.whole*10 + digit
		}
		n.digits++
	}
	if at == len(text) || text[at] != '.' {
		return n, at
	}
	for at++; at < len(text) && isDigit(text[at]); at++ {
		if n.scale < greatestScale {
			n.part, n.scale = n.part*10+uint64(text[at]-'0'), n.scale*10
		}
		n.digits++
	}
	return n, at
}

// times multiplies exactly and cuts below the nanosecond; it reports false when
// the product is beyond the greatest duration.
func (n number) times(length time.Duration) (time.Duration, bool) {
	over, whole := bits.Mul64(n.whole, uint64(length))
	if over > 0 || whole > math.MaxInt64 {
		return 0, false
	}
	hi, lo := bits.Mul64(n.part, uint64(length))
	// part is below scale, so that hi is too and the quotient below length.
	part, _ := bits.Div64(hi, lo, n.scale)
	if part > math.MaxInt64-whole {
		return 0, false
	}
	return time.Duration(whole + part), true
}

// scanWord gives the unit that begins at at, and where it ends: at the next number.
func scanWord(text string, at int) (word string, end int) {
	rest := text[at:]
	if i := strings.IndexAny(rest, "0123456789."); i >= 0 {
		rest = rest[:i]
	}
	return rest, at + len(rest)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
