package limit

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// judgeBucket is GCRA in exact fractions (docs/algorithms.md derives it). A request of q
// units passes when max(TAT, now) + q intervals is at most now + refill. The leaky bucket
// admits the same requests, and a request departs at max(TAT, now).
func (p *Plan) judgeBucket(c *Cell, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	d.from = span{int64(now), 0}
	if c.Time >= now && p.count > 0 { // A limit of 0 does not change the count of another limit.
		d.from = p.present(c, now)
	}
	p.judgeFrom(c, now, cost, mode, d)
}

// judgeBucketOf judges a cell whose policy of record is that of the plan of. Only the
// horizon of that plan shows whether the clock has stepped back. The owed units are exact.
func (p *Plan) judgeBucketOf(c *Cell, plan *Plan, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	d.from = span{int64(now), 0}
	if c.Time >= now && p.count > 0 && plan.count > 0 {
		d.from = p.restate(plan.present(c, now), plan, now)
	}
	p.judgeFrom(c, now, cost, mode, d)
}

// restate returns the TAT at which a bucket of p owes as many units as a bucket of the
// plan of at tat. Both plans have one period, so an interval is period/Count. The owed
// units are (tat - now) x Count / period, and the product is a whole number of parts. A
// wait above MaxRefill is cut to MaxRefill.
func (p *Plan) restate(tat span, plan *Plan, now headgate.Instant) span {
	if p.den == plan.den {
		return tat
	}
	hi, lo := bits.Mul64(uint64(tat.ns-int64(now)), plan.den)
	lo, carry := bits.Add64(lo, tat.part, 0)
	hi += carry
	if hi < p.den {
		if ns, part := bits.Div64(hi, lo, p.den); ns <= uint64(MaxRefill) {
			return span{int64(now) + int64(ns), part}
		}
	}
	return span{int64(now) + int64(MaxRefill), 0}
}

// judgeFrom decides on a bucket whose TAT is d.from. d.from must not be before now.
func (p *Plan) judgeFrom(c *Cell, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	d.now, d.at, d.cost = now, now, cost
	d.Verdict, d.Reason, d.retry = headgate.Allow, headgate.WithinLimit, 0
	d.returned, d.epoch = c.Returned, c.Epoch
	if cost > p.burst {
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
		d.to = d.from
		return
	}
	d.to = d.from.add(p.spanOf(cost), p.den)
	edge := span{int64(now) + p.refill.ns, p.refill.part}
	if p.leaky || d.to.after(edge) {
		p.judgeDeparture(edge, mode, d)
	}
}

// judgeDeparture decides a request beyond the edge, or any request of a leaky bucket.
func (p *Plan) judgeDeparture(edge span, mode headgate.OpKind, d *Draw) {
	late := d.to.sub(edge, p.den)
	wait := late
	switch {
	case p.leaky && late.after(span{}):
		d.refuse(headgate.QueueFull, p.queueRetry(late, mode, d))
		return
	case p.leaky:
		wait = d.from.sub(span{int64(d.now), 0}, p.den)
	case mode != headgate.Book:
		d.refuse(headgate.OverLimit, late.ceil())
		return
	}
	switch ahead := wait.ceil(); {
	case ahead == 0:
		// The queue is empty: the request departs now.
	case mode == headgate.TakeNow:
		d.refuse(headgate.OverLimit, ahead)
	case mode == headgate.Book && ahead > p.Policy.MaxWait:
		d.refuse(headgate.WaitTooLong, ahead-p.Policy.MaxWait)
	default:
		d.Verdict, d.Reason, d.retry = headgate.Wait, headgate.Scheduled, ahead
	}
}

// queueRetry returns the time until the queue has capacity for the refused request. For a
// booking, the departure must also be within MaxWait, and TakeNow departs at once.
func (p *Plan) queueRetry(late span, mode headgate.OpKind, d *Draw) time.Duration {
	ahead := d.from.sub(span{int64(d.now), 0}, p.den).ceil()
	switch mode {
	case headgate.Book:
		return max(late.ceil(), ahead-p.Policy.MaxWait)
	case headgate.TakeNow:
		return max(late.ceil(), ahead)
	default:
		return late.ceil()
	}
}

// refuse turns the draw into a refusal that takes nothing.
func (d *Draw) refuse(why headgate.Reason, retry time.Duration) {
	d.Verdict, d.Reason, d.retry = headgate.Deny, why, retry
	d.to = d.from
}

// present returns the cell's TAT. After a step back of the clock it limits the TAT to the
// horizon, so that a key waits for one refill at most. p is the policy of record, which
// never books beyond its horizon.
func (p *Plan) present(c *Cell, now headgate.Instant) span {
	tat := span{int64(c.Time), c.Units}
	horizon := span{int64(now) + p.horizon.ns, p.horizon.part}
	if tat.after(horizon) {
		tat = horizon
		c.Time, c.Units = headgate.Instant(tat.ns), tat.part
		c.renew()
	}
	return tat
}

// explainBucket writes the limit, the remaining units and the reset time after the draw.
func (p *Plan) explainBucket(d *Draw, decision *headgate.Decision) {
	decision.Limit = p.burst
	decision.ResetAfter = span{d.to.ns - int64(d.now), d.to.part}.ceil()
	edge := span{int64(d.now) + p.refill.ns, p.refill.part}
	decision.Remaining = 0
	if left := edge.sub(d.to, p.den); left.ns >= 0 {
		decision.Remaining = p.wholeUnits(left)
	}
}

// returnTokens gives back the taken units that have not yet refilled.
//
// The units of r occupy the times From to From + q intervals. Later takes occupy the times
// after them. Each unit returned since has moved these times forward by at most one
// interval. Times before now, after that shift, have refilled whether r was taken or
// not, and later decisions can depend on them. docs/algorithms.md proves that this
// never returns too many units.
//
// Only units that come back are counted as returned, rounded up.
func (p *Plan) returnTokens(c *Cell, r *headgate.Receipt, now headgate.Instant) bool {
	since := int64(c.Returned - r.Returned)
	if since > p.spanLimit() {
		return false
	}
	end := span{int64(r.From), r.FromPart}.add(p.spanOf(r.Cost), p.den)
	owed := end.sub(p.spanOf(since), p.den).sub(span{int64(now), 0}, p.den)
	if !owed.after(span{}) {
		return false
	}
	units := r.Cost
	if taken := p.spanOf(r.Cost); owed.after(taken) {
		owed = taken
	} else if units = p.wholeUnits(owed); p.spanOf(units) != owed {
		units++
	}
	c.countReturned(units)
	tat := span{int64(c.Time), c.Units}.sub(owed, p.den)
	c.Time, c.Units = headgate.Instant(tat.ns), tat.part
	return true
}

// spanLimit is the largest number of units that spanOf can convert without overflow.
func (p *Plan) spanLimit() int64 { return greatestBurst(p.Policy.Limit, MaxRefill) }

// overdrawn reports whether the bucket has booked departures in the future: its TAT is
// beyond that of an empty bucket. Tokens returned to such a bucket would be given
// out again at the departures of the waiters.
func (p *Plan) overdrawn(c *Cell, now headgate.Instant) bool {
	empty := span{int64(now) + p.refill.ns, p.refill.part}
	return p.Policy.MaxWait > 0 && (span{int64(c.Time), c.Units}).after(empty)
}

// returnDeparture returns a departure if it is the last one booked. An earlier departure
// stays unused, because later requests keep their times.
func (p *Plan) returnDeparture(c *Cell, r *headgate.Receipt) bool {
	from := span{int64(r.From), r.FromPart}
	if from.add(p.spanOf(r.Cost), p.den) != (span{int64(c.Time), c.Units}) {
		return false
	}
	c.Time, c.Units = r.From, r.FromPart
	return true
}
