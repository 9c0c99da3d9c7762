package feedback

import (
	"math"
	"time"
)

// endless stands for a number that is too large for a time.Duration.
const endless = time.Duration(math.MaxInt64)

// quantity is a number of a field that is not negative.
type quantity struct {
	whole int64
	part  time.Duration // the fraction, in billionths, rounded up
}

// in returns a number of units of time, rounded up.
func (q quantity) in(unit time.Duration) time.Duration {
	if q.whole > int64(endless/unit)-1 {
		return endless
	}
	part := (int64(q.part)*int64(unit) + int64(time.Second) - 1) / int64(time.Second)
	return time.Duration(q.whole)*unit + time.Duration(part)
}

// decimal parses a decimal number, such as 30 or 1.337. It returns false for other texts,
// also for numbers with a sign or an exponent, and for NaN.
func decimal(text string) (q quantity, ok bool) {
	q.whole, text, ok = digits(text)
	if !ok || text == "" {
		return q, ok
	}
	if text[0] != '.' || len(text) == 1 {
		return quantity{}, false
	}
	for i, scale := 1, time.Second; i < len(text); i++ {
		c := text[i]
		if c < '0' || c > '9' {
			return quantity{}, false
		}
		q.part += (time.Duration(c-'0')*scale + 9) / 10
		scale = (scale + 9) / 10
	}
	q.part = min(q.part, time.Second)
	return q, true
}

// digits parses the digits at the beginning of a text. For too many digits, it returns the
// largest number. It returns false for a text without a digit at its beginning.
func digits(text string) (number int64, rest string, ok bool) {
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return number, text[i:], i > 0
		}
		if number > (math.MaxInt64-9)/10 {
			number = math.MaxInt64 - 9
			continue
		}
		number = number*10 + int64(c-'0')
	}
	return number, "", text != ""
}

// date parses an HTTP date in any of its three forms (RFC 9110, section 5.6.7).
func date(text string) (time.Time, bool) {
	const shortest = len("Sun Nov  6 08:49:37 1994")
	if len(text) < shortest {
		return time.Time{}, false
	}
	const imf, rfc850 = "Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT"
	for _, layout := range [...]string{imf, rfc850, time.ANSIC} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
