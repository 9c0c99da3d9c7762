package twin

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// Calendar is the twin of one key that counts in windows of the calendar. It remembers all
// counted units. Its policy may change at any time, and each request may have other edges.
type Calendar struct {
	Policy  headgate.Policy
	from    headgate.Instant // The start of the window in which the count began.
	entries []entry
	last    headgate.Instant // The time of the last unit that was counted, also if it came back.
}

// NewCalendar returns the twin of a new key.
func NewCalendar(p headgate.Policy) *Calendar { return &Calendar{Policy: p} }

// Do decides cost at now, and counts it according to the policy and the mode. The edges must
// have a window that contains now. A Peek, and a Refund without effect, change nothing.
func (c *Calendar) Do(e *headgate.Edges, now headgate.Instant, cost int64, mode headgate.OpKind) Answer {
	rolled := Calendar{Policy: c.Policy, from: c.from, entries: slices.Clone(c.entries), last: c.last}
	rolled.roll(e, now)
	before := rolled.used()
	a := rolled.decide(now, cost, mode)
	if mode == headgate.Take || mode == headgate.Refund && rolled.used() < before {
		*c = rolled
	}
	return a
}

// roll ends a count that is over.
func (c *Calendar) roll(e *headgate.Edges, now headgate.Instant) {
	start, end, _ := e.Window(now)
	switch {
	case start.Sub(c.from) > c.apart() && c.last < start: // A window of its own, and not a version of the count's window.
		c.from, c.entries, c.last = start, nil, 0
	case c.from > end: // The clock has stepped back, by more than a window.
		c.from, c.last = start, 0
	case c.used() == 0 && start > c.from:
		c.from, c.last = start, 0
	}
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
	if w.counting(a) {
		c.entries = append(c.entries, entry{at: now, units: min(cost, headgate.MaxUnits-counted)})
		if cost > 0 {
			c.last = max(c.last, now)
		}
	}
	return a
}

// apart returns how far apart two windows may begin, and be one window of two versions: half of
// the longest window of the unit.
func (c *Calendar) apart() time.Duration {
	const hour = time.Hour
	return map[headgate.CalendarUnit]time.Duration{
		headgate.Day: 14 * hour, headgate.Week: 86 * hour, headgate.Month: 16 * 24 * hour, headgate.Year: 184 * 24 * hour,
	}[c.Policy.Limit.Calendar]
}

// counting reports whether an attempt with this answer counts.
func (w *window) counting(a Answer) bool {
	return a.Verdict == headgate.Allow || w.policy.CountRejected && a.Reason != headgate.Never || w.policy.CountAll
}

func (c *Calendar) used() int64 {
	sum := int64(0)
	for _, e := range c.entries {
		sum += e.units
	}
	return sum
}

// refund removes the newest units of the count.
func (c *Calendar) refund(cost int64) Answer {
	for i := len(c.entries) - 1; i >= 0 && cost > 0; i-- {
		units := min(c.entries[i].units, cost)
		c.entries[i].units -= units
		cost -= units
	}
	count := c.Policy.Limit.Count
	return Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: count - min(c.used(), count)}
}
