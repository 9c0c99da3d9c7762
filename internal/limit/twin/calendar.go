package twin

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// Calendar is the twin of one key that counts in windows of the calendar. It remembers all
// counted units. Its policy may change at any time, and each request may have other edges.
type Calendar struct {
	Policy headgate.Policy
	counts []count // The newest first. There is always one.
	// start is that of the window of the last decision, and carried: it counted units from before.
	start   headgate.Instant
	carried bool
}

// count has units whose times are not told apart.
type count struct {
	from, last headgate.Instant // last is the end of the minute of the last unit, also if it came back.
	entries    []entry
}

func (c *count) used() int64 {
	sum := int64(0)
	for _, e := range c.entries {
		sum += e.units
	}
	return sum
}

// minuteEnd returns the end of the minute that contains at.
func (c *count) minuteEnd(at headgate.Instant) headgate.Instant {
	return c.from.Add(at.Sub(c.from).Truncate(time.Minute) + time.Minute)
}

// NewCalendar returns the twin of a new key.
func NewCalendar(p headgate.Policy) *Calendar { return &Calendar{Policy: p, counts: make([]count, 1)} }

// Do decides cost at now, and counts it according to the policy and the mode. The edges must
// have a window that contains now. A Peek, and a Refund without effect, change nothing.
func (c *Calendar) Do(e *headgate.Edges, now headgate.Instant, cost int64, mode headgate.OpKind) Answer {
	rolled := Calendar{Policy: c.Policy}
	for _, n := range c.counts {
		n.entries = slices.Clone(n.entries)
		rolled.counts = append(rolled.counts, n)
	}
	at := rolled.roll(e, now)
	before := rolled.used()
	c.carried = slices.ContainsFunc(rolled.counts, func(n count) bool {
		return n.used() > 0 && n.last > rolled.start && n.from < rolled.start
	})
	rolled.carried = c.carried
	a := rolled.decide(at, cost, mode)
	if mode == headgate.Take || mode == headgate.Refund && rolled.used() < before {
		*c = rolled
	}
	return a
}

// begin begins an empty newest count in the window from start, after the count before it. If that one has a later end, it is the
// newest again.
func (c *Calendar) begin(start, now headgate.Instant) {
	used := slices.DeleteFunc(c.counts, func(n count) bool { return n.used() == 0 })
	if len(used) == 0 || used[0].last <= now {
		if len(used) > 0 {
			start = max(start, used[0].last)
		}
		used = append([]count{{from: start, last: start}}, used...)
	}
	c.counts = used
}

// roll ends the newest count if no unit of it is in the window. It returns the time of the decision.
func (c *Calendar) roll(e *headgate.Edges, now headgate.Instant) headgate.Instant {
	start, end, _ := e.Window(now)
	if c.counts[0].used() == 0 {
		c.begin(start, now)
	}
	newest := &c.counts[0]
	at := max(now, newest.from)
	switch {
	case newest.from > end: // The clock has stepped back, by more than a window.
		newest.from, at = start, now
		newest.last = newest.minuteEnd(now)
		c.counts = append(c.counts[:1:1], slices.DeleteFunc(c.counts[1:], func(n count) bool { return n.from >= end })...)
	case at > now && at < e[len(e)-1]:
		start, _, _ = e.Window(at)
	}
	c.start = start
	if newest = &c.counts[0]; start > newest.from && newest.last <= start {
		all := slices.DeleteFunc(c.counts, func(n count) bool { return n.used() == 0 || n.last.Add(c.longest()) <= at })
		if len(all) == 4 {
			three, four := all[2], all[3]
			from, last := min(three.from, four.from), max(three.last, four.last)
			three.from = from
			three.last = three.minuteEnd(last - 1)
			three.entries = append(four.entries, three.entries...)
			all = []count{all[0], all[1], three}
		}
		c.counts = append([]count{{from: start, last: start}}, all...)
	}
	return at
}

func (c *Calendar) decide(now headgate.Instant, cost int64, mode headgate.OpKind) Answer {
	if mode == headgate.Refund {
		return c.refund(cost)
	}
	w := window{policy: c.Policy}
	count, counted := c.Policy.Limit.Count, c.used()
	used := min(counted, count)
	a := Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: count - used - cost}
	switch {
	case cost > count:
		a = Answer{Verdict: headgate.Deny, Reason: headgate.Never, Remaining: count - used}
	case used+cost > count || c.Policy.CountAll && counted > count:
		a = Answer{Verdict: headgate.Deny, Reason: headgate.OverLimit, Remaining: count - used}
	}
	if n := &c.counts[0]; w.counting(a) {
		n.entries = append(n.entries, entry{at: now, units: min(cost, headgate.MaxUnits-n.used())})
		if cost > 0 {
			n.last = max(n.last, n.minuteEnd(now))
		}
	}
	return a
}

// longest bounds the windows of the unit.
func (c *Calendar) longest() time.Duration {
	const day = 24 * time.Hour
	return map[headgate.CalendarUnit]time.Duration{
		headgate.Day: 36 * time.Hour, headgate.Week: 8 * day, headgate.Month: 32 * day, headgate.Year: 367 * day,
	}[c.Policy.Limit.Calendar]
}

// counting reports whether an attempt with this answer counts.
func (w *window) counting(a Answer) bool {
	return a.Verdict == headgate.Allow || w.policy.CountRejected && a.Reason != headgate.Never || w.policy.CountAll
}

// Carried reports whether the last decision counted units of a count that began before its window.
func (c *Calendar) Carried() bool { return c.carried }

// Return removes units that were taken at a time from their count, and reports whether they can be
// within a window.
func (c *Calendar) Return(from headgate.Instant, cost int64, now headgate.Instant) bool {
	if from.Add(c.longest()) <= now {
		return false
	}
	for _, n := range c.counts {
		if from >= n.from && from < n.last {
			at := slices.IndexFunc(n.entries, func(e entry) bool { return e.at == from && e.units >= cost })
			n.entries[at].units -= cost
			return true
		}
	}
	return false
}

// used returns the units of all counts that have a unit in the window.
func (c *Calendar) used() int64 {
	sum := int64(0)
	for _, n := range c.counts {
		if n.last > c.start {
			sum += n.used()
		}
	}
	return sum
}

// refund removes the newest units of the window's counts.
func (c *Calendar) refund(cost int64) Answer {
	for _, n := range c.counts {
		for i := len(n.entries) - 1; i >= 0 && cost > 0 && n.last > c.start; i-- {
			units := min(n.entries[i].units, cost)
			n.entries[i].units -= units
			cost -= units
		}
	}
	count := c.Policy.Limit.Count
	return Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: count - min(c.used(), count)}
}
