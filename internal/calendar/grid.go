package calendar

import "time"

const (
	daySeconds   = 24 * 60 * 60
	daysPerWeek  = 7
	monthsOfYear = 12
	// epochMonday is the distance from day 0, a Thursday, to the first Monday.
	epochMonday = 4
)

// grid numbers the windows of one unit. Windows of days and weeks are numbered from 1970,
// months from the year 0, and years by their own number.
type grid struct {
	Settings

	unit Unit
	in   *time.Location
}

func gridOf(s Settings, unit Unit) grid {
	s.MonthStarts = max(1, s.MonthStarts)
	return grid{Settings: s, unit: unit, in: s.zone()}
}

// indexOf returns the number of the window of the local date of t. The window of t is this
// one, or a neighbor.
func (g *grid) indexOf(t int64) int64 {
	year, month, day := time.Unix(t, 0).In(g.in).Date()
	switch g.unit {
	case Day:
		return dayNumber(year, month, day)
	case Week:
		return floorDiv(dayNumber(year, month, day)-g.firstWeek(), daysPerWeek)
	case Month:
		return int64(year)*monthsOfYear + int64(month) - 1
	default:
		return int64(year)
	}
}

// start returns the second in which window n begins.
func (g *grid) start(n int64) int64 {
	switch g.unit {
	case Day:
		return dayStart(g.in, n)
	case Week:
		return dayStart(g.in, n*daysPerWeek+g.firstWeek())
	case Month:
		year := floorDiv(n, monthsOfYear)
		return dayStart(g.in, g.monthStart(int(year), time.Month(n-year*monthsOfYear)+1))
	default:
		return dayStart(g.in, g.monthStart(int(n), time.January))
	}
}

// firstWeek returns the first day from 1970 on with which a week begins.
func (g *grid) firstWeek() int64 {
	return (epochMonday + int64(g.WeekStarts) + daysPerWeek - int64(time.Monday)) % daysPerWeek
}

// monthStart returns the day with which the window of a month begins.
func (g *grid) monthStart(year int, month time.Month) int64 {
	last := dayNumber(year, month+1, 1) - 1
	return min(dayNumber(year, month, g.MonthStarts), last)
}

// dayNumber returns the number of a date after the first of January 1970.
func dayNumber(year int, month time.Month, day int) int64 {
	return floorDiv(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), daySeconds)
}

// dayStart returns the first second whose local date is the given day or later. It looks at
// each part of time with one offset from UTC, in order. Local time only moves forward within
// such a part.
func dayStart(in *time.Location, day int64) int64 {
	// No offset reaches a whole day, so the day begins later than this.
	at := time.Unix((day-1)*daySeconds, 0).In(in)
	for {
		_, offset := at.Zone()
		first := max(at.Unix(), day*daySeconds-int64(offset))
		_, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			end = end.Add(daySeconds * time.Second) // On the last day of a leap year after 2037, ZoneBounds ends a day early.
		}
		if end.IsZero() || first < end.Unix() {
			return first
		}
		at = end
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
