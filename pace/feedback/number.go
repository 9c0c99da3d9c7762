package feedback

import (
	"math"
	"time"
)

// endless stands for a number that is too large for a time.Duration.
const endless = time.Duration(math.MaxInt64)

// decimal parses a decimal number of units of time, such as 30 or 1.337, and rounds up. It
// returns false for other texts, also for numbers with a sign or an exponent, and for NaN.
func decimal(text string, unit time.Duration) (time.Duration, bool) {
	whole, rest := digits(text)
	if len(rest) == len(text) {
		return 0, false
	}
	d := endless
	if whole <= int64(endless/unit)-1 {
		d = time.Duration(whole) * unit
	}
	if rest == "" {
		return d, true
	}
	if rest[0] != '.' || len(rest) == 1 {
		return 0, false
	}
	part := time.Duration(0)
	for i, scale := 1, unit; i < len(rest); i++ {
		c := rest[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		part += (time.Duration(c-'0')*scale + 9) / 10
		scale = (scale + 9) / 10
	}
	if d == endless {
		return d, true
	}
	return d + min(part, unit), true
}

// digits parses the digits at the beginning of a text. For too many digits, it returns the
// largest number.
func digits(text string) (number int64, rest string) {
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return number, text[i:]
		}
		if number > (math.MaxInt64-9)/10 {
			number = math.MaxInt64 - 9
			continue
		}
		number = number*10 + int64(c-'0')
	}
	return number, ""
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
