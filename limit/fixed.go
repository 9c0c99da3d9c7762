package limit

import "github.com/headgate/headgate"

// countCeiling is where counters stop: far above every Count, far below overflow.
const countCeiling = 1 << 53

// judgeFixed counts in the window [kW, (k+1)W) that now lies in.
func (p *Plan) judgeFixed(c *Cell, now headgate.Instant, cost int64, d *Draw) {
	d.now, d.at, d.cost = now, p.rollFixed(c, now), cost
	d.epoch = c.Epoch
	end := c.Time + headgate.Instant(p.per)
	d.from.ns = int64(end)
	d.Verdict, d.Reason, d.retry = headgate.Allow, headgate.WithinLimit, 0
	used := min(int64(c.Units), p.count) // Counted refusals may have left more; full is full.
	switch {
	case cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
	case used+cost > p.count:
		d.Verdict, d.Reason, d.retry = headgate.Deny, headgate.OverLimit, end.Sub(now)
	default:
		used += cost
	}
	d.to.part = uint64(used)
}

// explainFixed says what the window, or that of a ban, has left after the draw.
func (p *Plan) explainFixed(d *Draw, decision *headgate.Decision) {
	decision.Limit = p.count
	decision.Remaining = max(0, p.count-int64(d.to.part))
	if d.Reason == headgate.Banned {
		decision.Remaining = 0 // By another version, whose count is smaller.
	}
	decision.ResetAfter = 0
	if d.to.part > 0 {
		decision.ResetAfter = headgate.Instant(d.from.ns).Sub(d.now)
	}
}

// rollFixed brings the cell to the window of now and gives the time to decide
// at. After a step back of up to a window the newer window is held; after a
// longer one its count moves to the present, so that nothing waits for the clock
// to catch up.
func (p *Plan) rollFixed(c *Cell, now headgate.Instant) headgate.Instant {
	start, per := c.Time, headgate.Instant(p.per)
	switch {
	case now >= start && now < start+per:
		return now
	case now < start && start-now <= per:
		return start
	case now > start:
		c.Units = 0
	default:
		c.Epoch++
	}
	c.Time = now - now%per
	return now
}

func (p *Plan) returnFixed(c *Cell, r *headgate.Receipt) bool {
	if r.From < c.Time || r.From >= c.Time+headgate.Instant(p.per) {
		return false
	}
	c.Units -= min(c.Units, uint64(r.Cost))
	return true
}
