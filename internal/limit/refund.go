package limit

import "github.com/headgate/headgate"

// RefundCell gives cost units back to the cell, whose policy of record belongs to the plan of.
// It reports whether any units came back, and for a fixed window also their number. Earlier receipts
// of the cell then return nothing. The policy of record stays. The plan must accept a Refund. d has
// the Edges of the Op and the Ended counts, as for JudgeCell. A Peek of cost 0 and SettleRefund give
// the Decision. If units came back to windows of the calendar, d is already that Peek: another one could be in an earlier window,
// after a step back of the clock.
func (p *Plan) RefundCell(c *Cell, plan *Plan, now headgate.Instant, cost int64, d *Draw) (units int64, given bool) {
	if p.Calendar() { // Without units to give back, a Refund must not begin a new count.
		units = p.refundCalendar(c, d, now, cost)
		return units, units > 0
	}
	p.JudgeOf(c, plan, now, 0, headgate.Peek, d)
	switch {
	case p.Policy.Algorithm == headgate.FixedWindow:
		units = c.refundFixed(cost)
		return units, units > 0
	case p.Blocks() || p.bookedAhead(d):
		return 0, false
	default:
		return 0, plan.refundBucket(c, now, cost)
	}
}

// SettleRefund turns the decision on a Peek of cost 0 into that on a Refund. units are those that a fixed window gave back;
// 0 for the other algorithms.
func SettleRefund(d *headgate.Decision, units int64) {
	d.Verdict, d.Reason, d.RetryAfter, d.Receipt = headgate.Allow, headgate.WithinLimit, 0, headgate.Receipt{Cost: units}
}

// refundFixed gives units back to a window that contains now, and returns their number.
func (c *Cell) refundFixed(cost int64) int64 {
	units := min(c.Units, uint64(cost))
	if units > 0 {
		c.Units -= units
		c.refunded()
	}
	return int64(units)
}

// refunded makes the receipts of a window invalid. The epoch and Returned change together, so that
// 2^32 refunds have other receipts.
func (c *Cell) refunded() {
	c.Epoch++
	c.Returned++
}

// bookedAhead reports whether departures are booked beyond the TAT of an empty bucket. Refunded
// units would be given out again at these departures.
func (p *Plan) bookedAhead(d *Draw) bool {
	edge := span{int64(d.now) + p.refill.ns, p.refill.part}
	return p.Policy.MaxWait > 0 && d.from.after(edge)
}

// refundBucket moves the TAT back by cost intervals, but not before now. p is the plan of the
// policy of record, which has judged the cell at now.
func (p *Plan) refundBucket(c *Cell, now headgate.Instant, cost int64) bool {
	tat := span{int64(c.Time), c.Units}
	if cost == 0 || p.Blocks() || !tat.after(span{int64(now), 0}) {
		return false
	}
	owed := tat.sub(span{int64(now), 0}, p.den)
	if cost > p.unitsIn(owed) {
		tat = span{int64(now), 0}
	} else {
		tat = tat.sub(p.spanOf(cost), p.den)
	}
	c.Time, c.Units = headgate.Instant(tat.ns), tat.part
	c.renew()
	return true
}
