package calendar

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Unit is the unit of a window.
type Unit = headgate.CalendarUnit

// The units of windows.
const (
	Day   = headgate.Day
	Week  = headgate.Week
	Month = headgate.Month
	Year  = headgate.Year
)

// LastMonthStart is the largest value of Settings.MonthStarts.
const LastMonthStart = 31

// Settings say where windows begin. Settings are comparable, and the zero Settings are
// valid: UTC, weeks from Sunday and months from the first day. [Default] has the defaults of
// the configuration.
type Settings struct {
	// Zone is the time zone of the days. nil means UTC.
	Zone *time.Location
	// WeekStarts is the first day of each week.
	WeekStarts time.Weekday
	// MonthStarts is the day on which months and years begin, from 1 to 31. In a month without
	// this day, the last day counts: the 31st of February is the 28th or 29th. 0 means 1. A
	// year begins with the window of January.
	MonthStarts int
}

// Default returns the defaults of the configuration: UTC, weeks from Monday and months from
// the first day.
func Default() Settings { return Settings{Zone: time.UTC, WeekStarts: time.Monday, MonthStarts: 1} }

// Check returns an error that names the field that is out of range, and the range.
func (s Settings) Check() error {
	switch {
	case s.WeekStarts < time.Sunday || s.WeekStarts > time.Saturday:
		return fmt.Errorf("calendar: week_starts %d is out of range: use a day from %s to %s",
			int(s.WeekStarts), time.Sunday, time.Saturday)
	case s.MonthStarts < 0 || s.MonthStarts > LastMonthStart:
		return fmt.Errorf("calendar: month_starts %d is out of range: use 1 to %d", s.MonthStarts, LastMonthStart)
	default:
		return nil
	}
}

// zone returns the time zone.
func (s Settings) zone() *time.Location {
	if s.Zone == nil {
		return time.UTC
	}
	return s.Zone
}

// Edges returns the edges of the windows around at: the start of the window before the one
// that contains at, of that one, of the next one and of the one after. The edges always
// increase, because empty windows are left out. Edges costs a few microseconds: [Windows]
// computes them once for each window.
//
// Settings must pass Check. at must be from 1970 to the year 2100. For a unit that is not of this
// package, Edges returns the zero Edges, which no store accepts.
func (s Settings) Edges(unit Unit, at time.Time) headgate.Edges {
	if unit < Day || unit > Year {
		return headgate.Edges{}
	}
	g := gridOf(s, unit)
	t := at.Unix()
	n := g.indexOf(t)
	start := g.start(n)
	for start > t {
		n--
		start = g.start(n)
	}
	end := g.start(n + 1)
	for end <= t { // Near a change of the zone, a window can begin before its local date stays.
		n++
		start, end = end, g.start(n+1)
	}
	before, after := n-1, n+2
	for g.start(before) == start { // The window before is empty.
		before--
	}
	for g.start(after) == end { // The next window is empty.
		after++
	}
	return headgate.Edges{instant(g.start(before)), instant(start), instant(end), instant(g.start(after))}
}

// instant converts seconds after the Unix epoch.
func instant(seconds int64) headgate.Instant {
	return headgate.Instant(seconds * int64(time.Second))
}
