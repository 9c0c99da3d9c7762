package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// countCeiling is where counters stop: far above every Count, far below overflow.
const countCeiling = 1 << 53

// judgeFixed counts in the window [kW, (k+1)W) that now lies in.
func (p *Plan) judgeFixed(c *Cell, now headgate.Instant, cost int64, d *headgate.Decision) {
	at := p.rollFixed(c, now)
	end := c.Time + headgate.Instant(p.per)
	d.At, d.Limit = at, p.count
	d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
	d.Receipt = headgate.Receipt{Cost: cost, At: at}
	used := int64(c.Units)
	switch {
	case cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
	case used+cost > p.count:
		d.Verdict, d.Reason, d.RetryAfter = headgate.Deny, headgate.OverLimit, end.Sub(now)
	default:
		used += cost
	}
	d.Remaining = max(0, p.count-used)
	d.ResetAfter = 0
	if used > 0 {
		d.ResetAfter = end.Sub(now)
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
	}
	c.Time = now - now%per
	return now
}

func (p *Plan) returnFixed(c *Cell, r *headgate.Receipt) bool {
	if r.At < c.Time || r.At >= c.Time+headgate.Instant(p.per) {
		return false
	}
	c.Units -= min(c.Units, uint64(r.Cost))
	return true
}

// carryFixed keeps the count if the old window reaches into the new one.
func (p *Plan) carryFixed(c *Cell, old *Plan, now headgate.Instant) {
	if p.per == old.per {
		return
	}
	start := now - now%headgate.Instant(p.per)
	if c.Time.Add(time.Duration(old.per)) <= start {
		c.Units = 0
	}
	c.Time = start
}
