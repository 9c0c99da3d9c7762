package logs

import (
	"bytes"
	"math"
	"time"

	"github.com/headgate/headgate"
)

// The times that a log may have, in seconds since 1970: until the year 2200, so that sums of times and durations fit.
const latest = 7258118400

// longest bounds a duration: a year. A longer one is unknown.
const longest = 365 * 24 * time.Hour

// second remembers the last text of a second, because most lines share it with the line before.
type second struct {
	text [40]byte
	n    int
	unix int64
}

func (s *second) known(text []byte) bool { return s.n == len(text) && bytes.Equal(s.text[:s.n], text) }

func (s *second) keep(text []byte, unix int64) {
	if len(text) <= len(s.text) {
		s.n, s.unix = copy(s.text[:], text), unix
	}
}

// instant makes a time of seconds and nanoseconds. It reports false for times outside of 1970 to 2200.
func instant(unix, nanos int64) (headgate.Instant, bool) {
	if unix < 0 || unix >= latest {
		return 0, false
	}
	return headgate.Instant(unix*int64(time.Second) + nanos), true
}

// clocks reads times, and keeps the last seconds.
type clocks struct{ common, iso second }

// common reads 17/May/2015:10:05:03 +0000, and 17/May/2015:10:05:03.123 without a zone, which is UTC.
func (c *clocks) readCommon(text []byte) (headgate.Instant, time.Duration, bool) {
	const seconds = len("17/May/2015:10:05:03")
	if len(text) < seconds {
		return 0, 0, false
	}
	end, nanos, unit, ok := readFraction(text, seconds)
	if !ok {
		return 0, 0, false
	}
	zone := text[end:]
	if end == seconds && c.common.known(text) { // The zone is part of the text.
		at, ok := instant(c.common.unix, 0)
		return at, unit, ok
	}
	unix, ok := civil(text[7:11], month(text[3:6]), text[0:2], text[12:14], text[15:17], text[18:20])
	if !ok || text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' || text[17] != ':' {
		return 0, 0, false
	}
	if len(zone) > 0 {
		if zone[0] != ' ' {
			return 0, 0, false
		}
		offset, ok := zoneOffset(zone[1:])
		if !ok {
			return 0, 0, false
		}
		unix -= offset
	}
	if end == seconds {
		c.common.keep(text, unix)
	}
	at, ok := instant(unix, nanos)
	return at, unit, ok
}

// readISO reads 2015-05-17T10:05:03.123Z, with a space for T, a comma for the point, and a zone +01:00, +0100 or none, which is UTC.
func (c *clocks) readISO(text []byte) (headgate.Instant, time.Duration, bool) {
	const seconds = len("2015-05-17T10:05:03")
	if len(text) < seconds {
		return 0, 0, false
	}
	end, nanos, unit, ok := readFraction(text, seconds)
	if !ok {
		return 0, 0, false
	}
	offset, ok := zoneOffset(text[end:])
	if !ok {
		return 0, 0, false
	}
	if !c.iso.known(text[:seconds]) {
		unix, ok := civil(text[0:4], number(text[5:7]), text[8:10], text[11:13], text[14:16], text[17:19])
		if !ok || text[4] != '-' || text[7] != '-' || text[10] != 'T' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
			return 0, 0, false
		}
		c.iso.keep(text[:seconds], unix)
	}
	at, ok := instant(c.iso.unix-offset, nanos)
	return at, unit, ok
}

// readFraction reads a fraction of a second at i, and returns its end and its unit.
func readFraction(text []byte, i int) (end int, nanos int64, unit time.Duration, ok bool) {
	unit = time.Second
	if i >= len(text) || text[i] != '.' && text[i] != ',' {
		return i, 0, unit, true
	}
	from := i + 1
	for i = from; i < len(text) && digit(text[i]); i++ {
		if unit > 1 {
			unit /= 10
			nanos += int64(text[i]-'0') * int64(unit)
		}
	}
	return i, nanos, unit, i > from
}

// civil returns the seconds since 1970 of a date and a time of day in UTC.
func civil(year []byte, month int, day, hour, minute, sec []byte) (int64, bool) {
	y, d, h, m, s := number(year), number(day), number(hour), number(minute), number(sec)
	if y < 0 || month < 1 || month > 12 || d < 1 || d > 31 || h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 60 {
		return 0, false
	}
	return time.Date(y, time.Month(month), d, h, m, s, 0, time.UTC).Unix(), true
}

// zoneOffset reads Z, +0100, +01:00 or nothing, in seconds east of UTC.
func zoneOffset(zone []byte) (int64, bool) {
	switch {
	case len(zone) == 0 || len(zone) == 1 && (zone[0] == 'Z' || zone[0] == 'z'):
		return 0, true
	case len(zone) == 6 && zone[3] == ':':
		zone = append(append(make([]byte, 0, 5), zone[:3]...), zone[4:]...)
	case len(zone) != 5:
		return 0, false
	}
	hours, minutes := number(zone[1:3]), number(zone[3:5])
	if hours < 0 || minutes < 0 || hours > 24 || minutes > 59 {
		return 0, false
	}
	offset := int64(hours)*3600 + int64(minutes)*60
	switch zone[0] {
	case '+':
		return offset, true
	case '-':
		return -offset, true
	default:
		return 0, false
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a few digits; -1 is none.
func number(text []byte) int {
	n := 0
	for _, c := range text {
		if !digit(c) {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// month returns the number of a month by its short English name; 0 is none.
func month(name []byte) int {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if string(name) == names[i:i+3] {
			return i/3 + 1
		}
	}
	return 0
}

// readNumber reads a time as a number with a fraction since 1970. unit is that of the whole part; 0 finds it by the size of the number.
func readNumber(text []byte, unit time.Duration) (headgate.Instant, time.Duration, bool) {
	whole, nanos, finest, ok := readDecimal(text, unit)
	if !ok || whole < 0 {
		return 0, 0, false
	}
	if unit == 0 {
		unit = unitBySize(whole)
		if whole >= 1e11 { // The number is not in seconds, as readDecimal took it. Its fraction counts parts of the unit.
			nanos = nanos * int64(unit) / int64(time.Second)
			finest = max(1, finest/(time.Second/unit))
		}
	}
	at, ok := instant(whole/int64(time.Second/unit), whole%int64(time.Second/unit)*int64(unit)+nanos)
	return at, finest, ok
}

// unitBySize returns the unit of a time after 1970: no log has times in seconds after the year 5000, or in milliseconds before 1973.
func unitBySize(whole int64) time.Duration {
	switch {
	case whole < 1e11:
		return time.Second
	case whole < 1e14:
		return time.Millisecond
	case whole < 1e17:
		return time.Microsecond
	default:
		return time.Nanosecond
	}
}

// readDecimal reads 123.456, of which the fraction is returned in nanoseconds. unit is that of the whole part, and 0 is a second.
func readDecimal(text []byte, unit time.Duration) (whole, nanos int64, finest time.Duration, ok bool) {
	if unit == 0 {
		unit = time.Second
	}
	finest = unit
	i := 0
	for ; i < len(text) && digit(text[i]); i++ {
		if whole > math.MaxInt64/10-10 {
			return 0, 0, 0, false
		}
		whole = 10*whole + int64(text[i]-'0')
	}
	if i == 0 {
		return 0, 0, 0, false
	}
	if i == len(text) {
		return whole, 0, finest, true
	}
	if text[i] != '.' {
		return readExponent(text, unit)
	}
	for i++; i < len(text) && digit(text[i]); i++ {
		if finest > 1 {
			finest /= 10
			nanos += int64(text[i]-'0') * int64(finest)
		}
	}
	if i < len(text) {
		return readExponent(text, unit)
	}
	return whole, nanos, finest, true
}

// read reads a time in any of the forms. unit is that of a number; 0 finds it by the size of the number.
func (c *clocks) read(text []byte, unit time.Duration) (headgate.Instant, time.Duration, bool) {
	if len(text) > 0 && text[0] == '[' {
		text = bytes.Trim(text, "[]")
	}
	switch {
	case len(text) > 10 && text[4] == '-':
		return c.readISO(text)
	case len(text) > 10 && text[2] == '/':
		return c.readCommon(text)
	default:
		return readNumber(text, unit)
	}
}
