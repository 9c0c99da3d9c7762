package rule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// The shortest and the longest period of a limit. Package limit has the same bounds.
// The check here can report the position in the text.
const (
	shortestPeriod = time.Microsecond
	longestPeriod  = 367 * 24 * time.Hour
)

const limitFix = "limit must be like 500/2s, 100/m or 10000/1d"

// ParseLimit parses a limit of the configuration: units, a slash and the period, as in
// "500/2s", "100/m" (equal to 100/1m) and "1000/1h30m". The units of time are us, ms,
// s, m, h and d. The words day, week, month and year are periods of the calendar, as in
// "200/month". Limit.String is the inverse. The error is a *ParseError.
func ParseLimit(text string) (headgate.Limit, error) {
	count, period, ok := strings.Cut(text, "/")
	if !ok {
		return headgate.Limit{}, &ParseError{
			Problem: "limit " + quote(text) + " has no period", Fix: limitFix, Offset: len(text),
		}
	}
	units, err := parseCount(count)
	if err != nil {
		return headgate.Limit{}, err
	}
	if unit, ok := headgate.ParseCalendarUnit(period); ok {
		return headgate.Limit{Count: units, Calendar: unit}, nil
	}
	per, err := parsePeriod(period, len(count)+1)
	if bad, found := errortype.As[*ParseError](err); found {
		if short := shortPeriod(period); short != "" {
			bad.Fix = "write " + count + "/" + short
		}
	}
	if err != nil {
		return headgate.Limit{}, err
	}
	return headgate.Limit{Count: units, Per: per}, nil
}

// shortPeriod returns the short form of a period such as sec, 2minutes or per hour. It
// returns "" for other texts.
func shortPeriod(text string) string {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	if strings.Trim(number, "0123456789") != "" || len(number) > 3 {
		return ""
	}
	unit := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text[len(number):])), "s")
	switch unit {
	case "sec", "second":
		return number + "s"
	case "min", "minute":
		return number + "m"
	case "hr", "hour":
		return number + "h"
	case "msec", "milli", "millisecond":
		return number + "ms"
	}
	return calendarPeriod(number, unit)
}

// calendarPeriod returns the valid form of a number of days, weeks, months or years. It
// returns "" for a multiple whose length the calendar decides.
func calendarPeriod(number, unit string) string {
	words := map[string]headgate.CalendarUnit{
		"day": headgate.Day, "week": headgate.Week, "wk": headgate.Week, "w": headgate.Week,
		"month": headgate.Month, "mon": headgate.Month, "year": headgate.Year, "yr": headgate.Year, "y": headgate.Year,
	}
	switch calendar, known := words[unit]; {
	case known && number == "":
		return calendar.String()
	case calendar == headgate.Day:
		return number + "d"
	case calendar == headgate.Week && number == "1":
		return "7d"
	default:
		return ""
	}
}

// parseCount parses the units of a limit. Only digits are valid, because a sign or a
// thousands separator would be ambiguous.
func parseCount(text string) (int64, error) {
	if text == "" {
		return 0, &ParseError{Problem: "limit has no count", Fix: limitFix}
	}
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, &ParseError{
				Problem: "count " + quote(text) + " is not a whole number", Fix: "count must be digits only, like 500", Offset: i,
			}
		}
	}
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count > headgate.MaxUnits {
		return 0, &ParseError{
			Problem: "count " + quote(text) + " is too large", Fix: fmt.Sprintf("use 0 to %d", int64(headgate.MaxUnits)),
		}
	}
	return count, nil
}

// parsePeriod parses the period, which starts at offset in the limit's text.
func parsePeriod(text string, offset int) (time.Duration, error) {
	scan := durationScan{what: "period", text: text, units: durationUnits[1:], offset: offset}
	if one, ok := unitLength(scan.units, text); ok {
		return one, nil
	}
	per, err := scan.total()
	if err != nil {
		return 0, err
	}
	if per < shortestPeriod || per > longestPeriod {
		return 0, &ParseError{
			Problem: "period " + quote(text) + " is out of range",
			Fix:     fmt.Sprintf("use %s to %dd", shortestPeriod, longestPeriod/(24*time.Hour)),
			Offset:  offset,
		}
	}
	return per, nil
}
