package guard

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
)

// countIn sets the calendar windows of a limit with a calendar period.
func (w *window) countIn(s Calendar) error {
	unit := w.limit.Calendar
	if unit == headgate.NoCalendar || unit > headgate.Year { // Prepare refuses an unknown unit.
		return nil
	}
	if err := s.Check(); err != nil {
		return err
	}
	w.calendar = calendar.New(s, unit)
	return nil
}

// calendarNow gives the time for the edges of Ops. A store in memory has the guard's kind of clock,
// which does not follow steps of the machine's clock. Other stores have clocks of their own, so the
// machine's time comes closest.
func (g *Guard) calendarNow() headgate.Instant {
	if g.followsMachine {
		return headgate.Instant(machineTime().UnixNano())
	}
	return g.clock.Now()
}

// edges gives the edges of an Op of the window; nil for a period with a length. Local has the guard's clock.
func (w *window) edges(g *Guard, local bool) *headgate.Edges {
	switch {
	case w.calendar == nil:
		return nil
	case local:
		return w.calendar.Edges(g.clock.Now())
	default:
		return w.calendar.Edges(g.calendarNow())
	}
}

// Period gives the length of the window that the decision is about: the period of the limit, or
// the length of the store's present window of the calendar. A change of summer time makes a day an
// hour longer or shorter.
func (r *Result) Period() time.Duration {
	if r.window == nil || r.window.calendar == nil {
		return r.Limit.Per
	}
	return r.window.calendar.Length(r.Decision.At)
}

// Quota gives the limit as protocols state it: with the length of the window in Per, also for a
// calendar period.
func (r *Result) Quota() headgate.Limit {
	l := r.Limit
	l.Per, l.Calendar = r.Period(), headgate.NoCalendar
	return l
}
