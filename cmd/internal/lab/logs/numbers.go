package logs

import (
	"bytes"
	"strconv"
	"time"
	"unsafe"
)

// readExponent reads numbers such as 1.5e-05, which JSON has for small durations.
func readExponent(text []byte, unit time.Duration) (whole, nanos int64, finest time.Duration, ok bool) {
	const long = 32 // digits
	if len(text) > long || !bytes.ContainsAny(text, "eE") {
		return 0, 0, 0, false
	}
	f, err := strconv.ParseFloat(text2(text), 64)
	if err != nil || f < 0 || f > 1e18 {
		return 0, 0, 0, false
	}
	whole = int64(f)
	return whole, int64((f - float64(whole)) * float64(unit)), max(1, unit/1e6), true
}

// text2 is the text of bytes without a copy, for calls that keep nothing.
func text2(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // A copy would allocate for each line.
}

// readDuration reads a duration in a unit. It takes -, -1, null and "" as unknown, +123 of HAProxy as 123, and adds the times of
// upstreams, as in "0.701, 0.001" of nginx. It reports false for a text of another form.
func readDuration(text []byte, unit time.Duration) (time.Duration, bool) {
	if len(text) == 0 || text[0] == '-' || string(text) == "null" {
		return -1, true
	}
	if text[0] == '+' {
		text = text[1:]
	}
	whole, nanos, _, ok := readDecimal(text, unit)
	switch {
	case !ok && bytes.ContainsAny(text, ",:"):
		return readDurations(text, unit)
	case !ok:
		return -1, false
	case whole > int64(longest/unit):
		return -1, true
	}
	return time.Duration(whole)*unit + time.Duration(nanos), true
}

// readDurations adds a list of durations. Unknown ones count as zero, unless all are unknown.
func readDurations(text []byte, unit time.Duration) (time.Duration, bool) {
	sum := time.Duration(-1)
	for len(text) > 0 {
		end := bytes.IndexAny(text, ",:")
		if end < 0 {
			end = len(text)
		}
		d, ok := readDuration(bytes.Trim(text[:end], " "), unit)
		if !ok {
			return -1, false
		}
		if d >= 0 {
			sum = min(longest, max(0, sum)+d)
		}
		text = text[min(len(text), end+1):]
	}
	return sum, true
}

// readStatus reads a status. It takes -, -1, 0, 000, null and "" as unknown.
func readStatus(text []byte) (int, bool) {
	if len(text) == 0 || string(text) == "null" || text[0] == '-' {
		return 0, true
	}
	if len(text) > len("99999") {
		return 0, false
	}
	n := number(text)
	return max(0, n), n >= 0
}

// readCost reads a number of units; anything else is unknown.
func readCost(text []byte) int64 {
	const long = 18 // digits of a number below 2^63
	if len(text) == 0 || len(text) > long {
		return -1
	}
	return int64(number(text))
}

// readAddress cuts the port and the brackets of an address, and takes - as none.
func readAddress(text []byte) []byte {
	if len(text) == 0 || text[0] == '-' && len(text) == 1 {
		return nil
	}
	if text[0] == '[' {
		if end := bytes.IndexByte(text, ']'); end > 0 {
			return text[1:end]
		}
	}
	if colon := bytes.IndexByte(text, ':'); colon >= 0 && colon == bytes.LastIndexByte(text, ':') {
		return text[:colon]
	}
	return text
}
