package limit

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// countsCalendar reports whether a policy can count in windows of the calendar.
func countsCalendar(p headgate.Policy) bool {
	return p.Algorithm == headgate.FixedWindow && p.Limit.Per == 0 && p.Limit.Calendar <= headgate.Year
}

// calendarError is the error of a policy that cannot.
func calendarError(p headgate.Policy) error {
	switch unit := p.Limit.Calendar; {
	case unit > headgate.Year:
		return &PolicyError{"period", unit.String() + " is not known", "use day, week, month or year"}
	case p.Limit.Per != 0:
		return &PolicyError{"period", "has the length " + p.Limit.Per.String() + " and is also a " + unit.String(), "use only one of them"}
	case p.Algorithm == headgate.Ban:
		return &PolicyError{
			"period", "is a " + unit.String() + " of the calendar, which a ban does not count in",
			"use a period with a length, such as 30d",
		}
	default:
		return &PolicyError{
			"period", "is a " + unit.String() + " of the calendar, which " + p.Algorithm.String() + " does not count in",
			"use fixed_window, or a period with a length, such as 30d",
		}
	}
}

// Calendar reports whether the plan counts in windows of the calendar, and needs edges.
func (p *Plan) Calendar() bool { return p.Policy.Limit.Calendar != headgate.NoCalendar }

const day = 24 * time.Hour

// longestWindowsTable bound the windows of each unit. They are longer than the unit, because
// zones move their clocks back.
var longestWindowsTable = [...]time.Duration{
	headgate.Day: 36 * time.Hour, headgate.Week: 8 * day, headgate.Month: 32 * day, headgate.Year: 367 * day,
}

// Spread returns half of the longest usual window of a unit. Windows that begin at most this
// far apart are one window in two versions of a limit, with another time zone or another first
// day. Two versions in turns cannot both begin a count, because the way from one window of a
// version to its next is at most twice as long.
func Spread(unit headgate.CalendarUnit) time.Duration { return spreadsTable[unit] }

var spreadsTable = [...]time.Duration{
	headgate.Day: 14 * time.Hour, headgate.Week: 7*day/2 + 2*time.Hour, headgate.Month: 16 * day, headgate.Year: 184 * day,
}

// KeptFor returns the longest time from the start of a count in windows of the calendar for
// which any version can count in it, if its last unit is within a Spread of the start: about
// one window and a half. It is also the longest time for which a unit counts without further
// changes of the settings.
func KeptFor(unit headgate.CalendarUnit) time.Duration {
	return spreadsTable[unit] + longestWindowsTable[unit]
}

// CheckEdges returns the error of an Op with these edges at the time of the store, or nil:
// one that wraps ErrNoEdges of package headgate, or a *headgate.EdgeError. A plan without a calendar period
// ignores edges.
func (p *Plan) CheckEdges(e *headgate.Edges, now headgate.Instant) error {
	if !p.Calendar() {
		return nil
	}
	if err := CheckEdges(p.Policy.Limit.Calendar, e); err != nil {
		return err
	}
	if _, _, ok := e.Window(now); !ok {
		return &headgate.EdgeError{At: now, Edges: *e}
	}
	return nil
}

// CheckEdges returns an error that wraps headgate.ErrNoEdges if e cannot be the edges of windows of the unit. A state keeps
// minutes in the microseconds of its Time, so edges are whole seconds.
func CheckEdges(unit headgate.CalendarUnit, e *headgate.Edges) error {
	if !e.Ordered() {
		return headgate.ErrNoEdges
	}
	for _, edge := range e {
		if edge%headgate.Instant(time.Second) != 0 {
			return fmt.Errorf("limit: the edge %s of a calendar window is not a whole second: %w",
				edge.Time().Format(time.RFC3339Nano), headgate.ErrNoEdges)
		}
	}
	longest := longestWindowsTable[unit]
	for i := range len(e) - 1 {
		if e[i+1].Sub(e[i]) > longest {
			return headgate.ErrNoEdges
		}
	}
	return nil
}

// PickWindow returns the index of the edge with which the window of now begins. Outside the
// edges, it returns the nearest window.
func PickWindow(e *headgate.Edges, now headgate.Instant) int {
	i := 0
	for i < len(e)-2 && now >= e[i+1] {
		i++
	}
	return i
}

// Carried reports whether a count with this Time began before the window of now. Its units may
// be from before that window.
func Carried(e *headgate.Edges, count, now headgate.Instant) bool {
	return CountBegan(count) < CountBegan(e[PickWindow(e, now)])
}

// CountEnds returns the edge after now at which a count with the Time count ends. It is the
// first start of a window that Begins a count, or the last edge.
func CountEnds(unit headgate.CalendarUnit, e *headgate.Edges, count, now headgate.Instant) headgate.Instant {
	i := PickWindow(e, now) + 1
	for i < len(e)-1 && !Begins(unit, count, e[i]) {
		i++
	}
	return e[i]
}

// Begins reports whether the window from start has a count of its own, beside one with the Time
// count: they are more than a Spread apart, and no unit of the count is within the window.
func Begins(unit headgate.CalendarUnit, count, start headgate.Instant) bool {
	apart := start.Sub(CountBegan(count))
	return apart > spreadsTable[unit] && apart >= spreadsTable[unit]+lateMinutes(count)
}

// A count keeps the minute of its last unit, so that a window of other settings does not forget
// units that are within it. The Time of its Cell is the start of the count, a whole second, and
// one microsecond for each minute from a Spread after the start to the end of that minute. A last
// unit before is within no window that Begins. Edges of all zones since 1972 are whole minutes
// apart, so a minute is exact.
const (
	lateUnit = headgate.Instant(time.Microsecond)
	// mostLate bounds the minutes: 694 days. The start of an older count moves.
	mostLate = headgate.Instant(time.Second)/lateUnit - 1
)

// CountBegan returns the start of the window in which a count with this Time began.
func CountBegan(count headgate.Instant) headgate.Instant {
	second := headgate.Instant(time.Second)
	return count - ((count%second)+second)%second
}

// lateMinutes returns the time from a Spread after the start of a count to the end of the
// minute of its last unit.
func lateMinutes(count headgate.Instant) time.Duration {
	return time.Duration((count-CountBegan(count))/lateUnit) * time.Minute
}

// CountFreeAt returns the instant from which no window can count a count with this Time.
func CountFreeAt(unit headgate.CalendarUnit, count headgate.Instant) headgate.Instant {
	return CountBegan(count).Add(KeptFor(unit) + lateMinutes(count))
}

// countedAt returns the Time of a count after a unit at the time at.
func countedAt(unit headgate.CalendarUnit, count, at headgate.Instant) headgate.Instant {
	began := CountBegan(count)
	late := at.Sub(began) - spreadsTable[unit]
	if late < 0 {
		return count
	}
	minutes := headgate.Instant(late/time.Minute) + 1
	if minutes > mostLate {
		began = began.Add(time.Duration(minutes-mostLate) * time.Minute)
		minutes = mostLate
	}
	return max(count, began+minutes*lateUnit)
}

// rollCalendar moves the cell to the window that contains now, and returns the time of the
// decision. It treats a clock that has stepped back like rollFixed.
func (p *Plan) rollCalendar(c *Cell, e *headgate.Edges, now headgate.Instant) headgate.Instant {
	i := PickWindow(e, now)
	start, end := CountBegan(e[i]), e[i+1]
	switch began := CountBegan(c.Time); {
	case start > began && (c.Units == 0 || Begins(p.Policy.Limit.Calendar, c.Time, start)):
		c.Time, c.Units = start, 0
	case began > end:
		c.Time = start
		c.Epoch++
	}
	return max(now, CountBegan(c.Time))
}

// EdgesOf returns edges within which the cell counts, for a caller that has no Op.
func (p *Plan) EdgesOf(c *Cell) headgate.Edges {
	began, end := CountBegan(c.Time), CountFreeAt(p.Policy.Limit.Calendar, c.Time)
	return headgate.Edges{began, began, end, end}
}
