package limit

import (
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
// which any version can count in it: about one window and a half.
func KeptFor(unit headgate.CalendarUnit) time.Duration {
	return spreadsTable[unit] + longestWindowsTable[unit]
}

// CheckEdges returns the error of an Op with these edges at the time of the store, or nil:
// ErrNoEdges of package headgate, or a *headgate.EdgeError. A plan without a calendar period
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

// CheckEdges returns headgate.ErrNoEdges if e cannot be the edges of windows of the unit.
func CheckEdges(unit headgate.CalendarUnit, e *headgate.Edges) error {
	if !e.Ordered() {
		return headgate.ErrNoEdges
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

// CountEnds returns the edge after now at which a count ends that began at from. It is the
// first start of a window that Begins a count, or the last edge.
func CountEnds(unit headgate.CalendarUnit, e *headgate.Edges, from, now headgate.Instant) headgate.Instant {
	i := PickWindow(e, now) + 1
	for i < len(e)-1 && !Begins(unit, from, e[i]) {
		i++
	}
	return e[i]
}

// Begins reports whether the window from start has a count of its own, beside one that began at
// from: they are more than a Spread apart.
func Begins(unit headgate.CalendarUnit, from, start headgate.Instant) bool {
	return start.Sub(from) > spreadsTable[unit]
}

// rollCalendar moves the cell to the window that contains now, and returns the time of the
// decision. It treats a clock that has stepped back like rollFixed.
func (p *Plan) rollCalendar(c *Cell, e *headgate.Edges, now headgate.Instant) headgate.Instant {
	i := PickWindow(e, now)
	start, end := e[i], e[i+1]
	switch {
	case start > c.Time && (c.Units == 0 || Begins(p.Policy.Limit.Calendar, c.Time, start)):
		c.Time, c.Units = start, 0
	case c.Time > end:
		c.Time = start
		c.Epoch++
	}
	return max(now, c.Time)
}

// EdgesOf returns edges within which the cell counts, for a caller that has no Op.
func (p *Plan) EdgesOf(c *Cell) headgate.Edges {
	end := c.Time.Add(KeptFor(p.Policy.Limit.Calendar))
	return headgate.Edges{c.Time, c.Time, end, end}
}
