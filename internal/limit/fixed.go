package limit

import "github.com/headgate/headgate"

// countCeiling is the maximum of the counters of windows. All stores count exactly up to it.
const countCeiling = headgate.MaxUnits

// judgeFixed counts in the window [kW, (k+1)W) that contains now, or in that of the calendar.
func (p *Plan) judgeFixed(c *Cell, now headgate.Instant, cost int64, d *Draw) {
	d.now = now
	if p.Calendar() {
		d.changed = false
		d.at = p.rollCalendar(c, d, now)
		p.decideCalendar(c, d, cost)
		return
	}
	d.at = p.rollFixed(c, now)
	p.decideFixed(c, d, cost, c.Units, c.Time+headgate.Instant(p.per))
}

// decideCalendar decides cost in the window of the draw.
func (p *Plan) decideCalendar(c *Cell, d *Draw, cost int64) {
	var units uint64
	units, d.carried = d.unitsIn(c, d.Edges[d.window])
	p.decideFixed(c, d, cost, units, d.leaves(c, 0))
}

// decideFixed decides cost in a window that has units and ends at a time.
func (p *Plan) decideFixed(c *Cell, d *Draw, cost int64, units uint64, end headgate.Instant) {
	d.cost, d.returned, d.epoch = cost, c.Returned, c.Epoch
	d.Verdict, d.Reason, d.retry = headgate.Allow, headgate.WithinLimit, 0
	used := min(int64(units), p.count) // Counted refusals can exceed Count.
	switch {
	case cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
	case used+cost > p.count || p.Policy.CountAll && int64(units) > p.count:
		d.Verdict, d.Reason, d.retry = headgate.Deny, headgate.OverLimit, end.Sub(d.now)
		if p.Calendar() {
			d.retry = d.leaves(c, p.count-cost).Sub(d.now)
		} else {
			d.retry += p.paying(units, cost)
		}
	default:
		used += cost
	}
	if !p.Calendar() {
		end = end.Add(p.paying(units, p.count))
	}
	counted := uint64(used)
	if p.Policy.CountAll {
		counted = units + uint64(cost) // The attempt counts, and so does a count above a limit of 0.
	}
	d.from, d.to = span{int64(end), counted}, span{part: uint64(used)}
}

// explainFixed writes the remaining units and the reset time of a window or a ban after the
// draw.
func (p *Plan) explainFixed(d *Draw, decision *headgate.Decision) {
	decision.Limit = p.count
	decision.Remaining = max(0, p.count-int64(d.to.part))
	if d.Reason == headgate.Banned {
		decision.Remaining = 0 // The ban comes from another version with a smaller count.
	}
	decision.ResetAfter = 0
	if d.from.part > 0 {
		decision.ResetAfter = headgate.Instant(d.from.ns).Sub(d.now)
	}
}

// rollFixed moves the cell to the window that contains now, and returns the time of the
// decision. After a step back of up to one window, the cell keeps the newer window. After
// a longer step, the count moves to the present, so that no request waits until the
// clock catches up.
func (p *Plan) rollFixed(c *Cell, now headgate.Instant) headgate.Instant {
	start, per := c.Time, headgate.Instant(p.per)
	switch {
	case now >= start && now < start+per:
		return now
	case now < start && start-now <= per:
		return start
	case now > start:
		c.Units = p.carry(c.Units, int64((now-start)/per))
	default:
		c.Epoch++
	}
	c.Time = now - now%per
	return now
}

func (p *Plan) returnFixed(c *Cell, e *Ended, r *headgate.Receipt, now headgate.Instant) bool {
	switch {
	case r.Returned != c.Returned:
		return false
	case p.Calendar():
		return p.returnCalendar(c, e, r, now)
	case r.From < c.Time || r.From >= c.Time+headgate.Instant(p.per):
		return false
	}
	c.Units -= min(c.Units, uint64(r.Units()))
	return true
}
