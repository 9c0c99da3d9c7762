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

// LongestWindow returns a bound of the windows of a unit under any settings. It is also the longest
// time after that of a take's decision for which its receipt returns units.
func LongestWindow(unit headgate.CalendarUnit) time.Duration { return longestWindowsTable[unit] }

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

// Count is a number of units in windows of the calendar, with the time from the first to the last
// of them. A count does not know the times of its units. If any of them can be within a window, all
// of them count there.
//
// Time is the start of the window in which the count began, or the end of the count before it if that is later, and one microsecond
// for each minute from there to the end of the minute of the last unit. The start is a whole second. Edges of all zones since 1972
// are whole minutes apart, so a minute is exact.
type Count struct {
	Time  headgate.Instant
	Units uint64
}

// Ended are the counts of a key before that of its Cell, the newest first. Other settings can have
// a window that contains their units. Without a change of the settings, two are in use: two windows
// together are longer than any one window. If more counts than three can be within a window, the
// oldest become one.
type Ended [3]Count

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

// countLast returns the end of the minute of the last unit of a count with this Time.
func countLast(count headgate.Instant) headgate.Instant {
	began := CountBegan(count)
	return began.Add(time.Duration((count-began)/lateUnit) * time.Minute)
}

// CountFreeAt returns the instant from which no window can contain a unit of a count with this Time.
func CountFreeAt(unit headgate.CalendarUnit, count headgate.Instant) headgate.Instant {
	return countLast(count).Add(longestWindowsTable[unit])
}

// countOf returns the Time of a count from began to the minute that contains last.
func countOf(began, last headgate.Instant) headgate.Instant {
	minutes := headgate.Instant(last.Sub(began)/time.Minute) + 1
	if minutes > mostLate {
		began, minutes = began.Add(time.Duration(minutes-mostLate)*time.Minute), mostLate
	}
	return began + minutes*lateUnit
}

// within reports whether units of the count can be in a window from start.
func (c *Count) within(start headgate.Instant) bool { return c.Units > 0 && countLast(c.Time) > start }

// merge adds the units of an older count.
func (c *Count) merge(older Count) {
	last := max(countLast(c.Time), countLast(older.Time)) - 1
	c.Time = countOf(min(CountBegan(c.Time), CountBegan(older.Time)), last)
	c.Units = min(c.Units+older.Units, countCeiling)
}

// add makes c the newest of the counts at a time. It drops counts that no window can contain.
func (e *Ended) add(unit headgate.CalendarUnit, c Count, now headgate.Instant) {
	all, n := [...]Count{c, e[0], e[1], e[2]}, 0
	*e = Ended{}
	for _, c := range all {
		switch {
		case c.Units == 0 || CountFreeAt(unit, c.Time) <= now:
		case n < len(e):
			e[n], n = c, n+1
		default:
			e[n-1].merge(c)
		}
	}
}

// rollCalendar moves the cell to the window of now, and returns the time of the decision. A count
// without a unit in that window ends. After a step back of the clock by up to one window, the time is
// that of the start of the count. After a longer step, the count moves to the present, as in
// rollFixed. An empty count has no start of its own: see Draw.begin.
func (p *Plan) rollCalendar(c *Cell, d *Draw, now headgate.Instant) headgate.Instant {
	i, at := PickWindow(d.Edges, now), now
	if c.Units == 0 {
		d.begin(c, d.Edges[i], now)
	}
	began := CountBegan(c.Time)
	switch end := d.Edges[i+1]; {
	case now >= began:
	case began <= end:
		at = began
		i = PickWindow(d.Edges, at)
	default:
		d.moveBack(c, d.Edges[i], end, now)
		began = d.Edges[i]
	}
	d.window = i
	if start := d.Edges[i]; start > began && countLast(c.Time) <= start {
		d.Ended.add(p.Policy.Limit.Calendar, Count{c.Time, c.Units}, at)
		c.Time, c.Units, d.changed = start, 0, true
	}
	return at
}

// begin makes the empty count of the cell begin with the window from start, but not before the end of the count before it. If the
// clock has stepped back to before that end, that count is the present one again. So a request that counts nothing has no effect on
// later ones, and a state without a count is as a new one.
func (d *Draw) begin(c *Cell, start, now headgate.Instant) {
	c.Time = start
	for i, n := range d.Ended {
		if n.Units == 0 {
			continue
		}
		if last := countLast(n.Time); last <= now {
			c.Time = max(start, last)
		} else {
			c.Time, c.Units, d.changed = n.Time, n.Units, true
			copy(d.Ended[i:], d.Ended[i+1:])
			d.Ended[len(d.Ended)-1] = Count{}
		}
		return
	}
}

// moveBack moves the count of the cell into the window from start to end. Counts that ended after it
// are dropped.
func (d *Draw) moveBack(c *Cell, start, end, now headgate.Instant) {
	c.Time = countOf(start, now)
	c.Epoch++
	for i := range d.Ended {
		if CountBegan(d.Ended[i].Time) >= end {
			d.Ended[i], d.changed = Count{}, true
		}
	}
}

// unitsIn returns the units that can be in a window from start, and whether some of them can be from before it.
func (d *Draw) unitsIn(c *Cell, start headgate.Instant) (units uint64, carried bool) {
	n := Count{c.Time, c.Units}
	for i := 0; ; i++ {
		if n.within(start) {
			units = min(units+n.Units, countCeiling)
			carried = carried || CountBegan(n.Time) < start
		}
		if i == len(d.Ended) {
			return units, carried
		}
		n = d.Ended[i]
	}
}

// leaves returns the first edge after the window of the decision from which at most this number of the units count, or the
// last edge. It is the next edge, unless the clock has stepped back, or a zone is not whole minutes from others.
func (d *Draw) leaves(c *Cell, most int64) headgate.Instant {
	for _, edge := range d.Edges[d.window+1 : len(d.Edges)-1] {
		if units, _ := d.unitsIn(c, edge); int64(units) <= most {
			return edge
		}
	}
	return d.Edges[len(d.Edges)-1]
}

// refundCalendar gives units of the window of now back, the newest count first, and returns their
// number. Without units, it changes nothing. Otherwise d decides a Peek of cost 0 in the window of the refund.
func (p *Plan) refundCalendar(c *Cell, d *Draw, now headgate.Instant, cost int64) int64 {
	rolled, before, left := *c, d.Ended, uint64(cost)
	d.now, d.changed = now, false
	d.at = p.rollCalendar(&rolled, d, now)
	take := func(from *uint64) {
		units := min(*from, left)
		*from -= units
		left -= units
	}
	take(&rolled.Units)
	for i := range d.Ended {
		if d.Ended[i].within(d.Edges[d.window]) {
			take(&d.Ended[i].Units)
		}
	}
	if left == uint64(cost) {
		d.Ended, d.changed = before, false
		return 0
	}
	rolled.refunded()
	p.decideCalendar(&rolled, d, 0)
	*c, d.changed = rolled, true
	return cost - int64(left)
}

// returnCalendar returns units to the count in which they were taken, and reports whether it did.
func (p *Plan) returnCalendar(c *Cell, e *Ended, r *headgate.Receipt, now headgate.Instant) bool {
	if r.From.Add(LongestWindow(p.Policy.Limit.Calendar)) <= now {
		return false
	}
	all := [...]Count{{c.Time, c.Units}, e[0], e[1], e[2]}
	for i := range all {
		if n := &all[i]; r.From >= CountBegan(n.Time) && r.From < countLast(n.Time) {
			n.Units -= min(n.Units, uint64(r.Units()))
			c.Units, *e = all[0].Units, Ended(all[1:])
			return true
		}
	}
	return false
}

// EdgesOf returns edges within which the cell counts, for a caller that has no Op.
func (p *Plan) EdgesOf(c *Cell) headgate.Edges {
	began, end := CountBegan(c.Time), CountFreeAt(p.Policy.Limit.Calendar, c.Time)
	return headgate.Edges{began, began, end, end}
}
