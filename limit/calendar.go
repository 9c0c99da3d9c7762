package limit

import "github.com/headgate/headgate"

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
	default:
		return &PolicyError{
			"period", "is a " + unit.String() + " of the calendar, which " + p.Algorithm.String() + " does not count in",
			"use fixed_window, or a period with a length, such as 30d",
		}
	}
}
