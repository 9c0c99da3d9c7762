package headgate

import (
	"fmt"
	"time"
)

// CalendarUnit is the unit of a calendar window. Package calendar computes the windows of a
// time zone.
type CalendarUnit uint8

// The units of calendar windows. A limit with NoCalendar has a period of a fixed length.
const (
	NoCalendar CalendarUnit = iota
	Day
	Week
	Month
	Year
)

// unitNames has the names in the configuration, in the order of the constants.
var unitNames = [...]string{"none", "day", "week", "month", "year"}

// String returns the name of the unit in the configuration: "day", "week", "month" or
// "year".
func (u CalendarUnit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return fmt.Sprintf("calendar(%d)", uint8(u))
}

// ParseCalendarUnit parses the name of a unit in the configuration.
func ParseCalendarUnit(name string) (CalendarUnit, bool) {
	for u := Day; u <= Year; u++ {
		if u.String() == name {
			return u, true
		}
	}
	return NoCalendar, false
}

// Edges are four edges of calendar windows: the start of the window before the present one,
// of the present one, of the next one and of the one after. They limit three windows.
// Edges never decrease, and are whole seconds. The present is that of the caller's clock, so the window of the
// store's clock may be any of the three.
//
// Edges of all Ops of a key must be whole minutes apart, as those of package calendar for all zones since 1972 are. Otherwise a unit
// in the minute before an edge counts as used after it, and ResetAfter and RetryAfter can be too short.
//
// Ops share Edges by pointer, so a caller never changes them.
type Edges [4]Instant

// Window returns the start and the end of the window that contains t. ok is false if t is
// outside the edges.
func (e *Edges) Window(t Instant) (start, end Instant, ok bool) {
	for i := range len(e) - 1 {
		if t < e[i+1] {
			return e[i], e[i+1], t >= e[i]
		}
	}
	return 0, 0, false
}

// farthest bounds edges: 146 years before and after 1970. Scripts count microseconds up to it
// exactly.
const farthest Instant = 1 << 62

// Ordered reports whether the edges never decrease, limit at least one window, and are within
// 146 years of 1970.
func (e *Edges) Ordered() bool {
	return e != nil && e[0] >= -farthest && e[0] <= e[1] && e[1] <= e[2] && e[2] <= e[3] && e[0] < e[3] && e[3] <= farthest
}

// EdgeError means that the clock of the store is outside the edges of an Op. The store
// counts nothing. Either the clock of the store or the clock of the caller is wrong.
type EdgeError struct {
	// At is the time of the store.
	At Instant
	// Edges are those of the Op.
	Edges Edges
}

// Error states the time, the edges and their difference.
func (e *EdgeError) Error() string {
	first, last := e.Edges[0], e.Edges[len(e.Edges)-1]
	distance := fmt.Sprintf("%s before the window that begins at %s", first.Sub(e.At), text(first))
	if e.At >= last {
		distance = fmt.Sprintf("%s after the window that ends at %s", e.At.Sub(last), text(last))
	}
	return "headgate: the clock of the store is at " + text(e.At) + ", " + distance +
		": set the clocks of the store and of this instance"
}

func text(t Instant) string { return t.Time().Format(time.RFC3339Nano) }
