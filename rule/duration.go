package rule

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// unit is the name of a unit of time.
type unit struct {
	word   string
	length time.Duration
}

// durationUnits are the units of Go's durations, and the day. The nanosecond comes
// first, because periods of limits skip it.
var durationUnits = [...]unit{
	{"ns", time.Nanosecond},
	{"us", time.Microsecond},
	{"µs", time.Microsecond}, // U+00B5, the micro sign that time.Duration prints
	{"μs", time.Microsecond}, // U+03BC, the Greek letter
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
}

// ParseDuration parses a duration of the configuration: Go's form ("250ms", "1h30m",
// "1.5h"), and d for 24 hours. A sign is invalid. As in Go, fractions of a nanosecond
// are cut off. The error is a *ParseError.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	return durationScan{what: "duration", text: text, units: durationUnits[:]}.total()
}

// durationScan parses one duration from left to right.
type durationScan struct {
	what   string // name of the duration in errors
	text   string
	units  []unit
	offset int // position of text within the user's text
}

// total adds the elements, such as the 1h and the 30m of "1h30m".
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
		Problem: fmt.Sprintf("%s %s is too long", s.what, quote(s.text)),
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

// greatestScale keeps part and scale within a uint64. Further digits are less than a
// nanosecond in every unit.
const greatestScale = 1e18

// scanNumber parses digits, with or without a point, and returns the position after
// them. A whole beyond the longest duration becomes the greatest uint64.
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

// times multiplies exactly and cuts off fractions of a nanosecond. times reports false
// when the product exceeds the longest duration.
func (n number) times(length time.Duration) (time.Duration, bool) {
	over, whole := bits.Mul64(n.whole, uint64(length))
	if over > 0 || whole > math.MaxInt64 {
		return 0, false
	}
	hi, lo := bits.Mul64(n.part, uint64(length))
	// The part is below scale. Therefore hi is below scale, and the quotient is below length.
	part, _ := bits.Div64(hi, lo, n.scale)
	if part > math.MaxInt64-whole {
		return 0, false
	}
	return time.Duration(whole + part), true
}

// scanWord returns the unit at position at, and the position of the next number.
func scanWord(text string, at int) (word string, end int) {
	rest := text[at:]
	if i := strings.IndexAny(rest, "0123456789."); i >= 0 {
		rest = rest[:i]
	}
	return rest, at + len(rest)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
