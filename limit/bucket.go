package limit

import (
	"math"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// judgeBucket is GCRA in exact fractions (docs/algorithms.md derives it): a
// request of q units passes when max(TAT, now) + q intervals stays within
// now + refill. The leaky bucket admits the same, and its departure is max(TAT, now).
func (p *Plan) judgeBucket(c *Cell, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	d.from = span{int64(now), 0}
	if c.Time >= now && p.count > 0 { // A limit of 0 leaves alone what another one counted.
		d.from = p.present(c, now)
	}
	p.judgeFrom(c, now, cost, mode, d)
}

// judgeBucketOf judges a cell whose policy of record is of's: only of's own horizon
// tells whether the clock has stepped back, and the units owed are exactly those.
func (p *Plan) judgeBucketOf(c *Cell, of *Plan, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	d.from = span{int64(now), 0}
	if c.Time >= now && p.count > 0 && of.count > 0 {
		d.from = p.restate(of.present(c, now), of, now)
	}
	p.judgeFrom(c, now, cost, mode, d)
}

// restate gives the TAT at which a bucket of p owes as many units as one of the plan
// of does at tat. Both have one period, so an interval is 1/Count of it: units owed
// are (tat - now) x Count / period, and the product is a whole number of parts. What
// p refuses for longer than MaxRefill it refuses for MaxRefill.
func (p *Plan) restate(tat span, of *Plan, now headgate.Instant) span {
	if p.den == of.den {
		return tat
	}
	hi, lo := bits.Mul64(uint64(tat.ns-int64(now)), of.den)
	lo, carry := bits.Add64(lo, tat.part, 0)
	hi += carry
	if hi < p.den {
		if ns, part := bits.Div64(hi, lo, p.den); ns <= uint64(MaxRefill) {
			return span{int64(now) + int64(ns), part}
		}
	}
	return span{int64(now) + int64(MaxRefill), 0}
}

// judgeFrom decides a bucket whose TAT is d.from, which is not before now.
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

// judgeDeparture decides what cannot simply go: a request beyond the edge, or any
// request of a leaky bucket.
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
	case mode == headgate.Book && ahead > p.Policy.MaxWait:
		d.refuse(headgate.WaitTooLong, ahead-p.Policy.MaxWait)
	default:
		d.Verdict, d.Reason, d.retry = headgate.Wait, headgate.Scheduled, ahead
	}
}

// queueRetry gives the time until a request that finds the queue full has room,
// and, if it is to be booked, a departure within MaxWait too.
func (p *Plan) queueRetry(late span, mode headgate.OpKind, d *Draw) time.Duration {
	if mode != headgate.Book {
		return late.ceil()
	}
	ahead := d.from.sub(span{int64(d.now), 0}, p.den).ceil()
	return max(late.ceil(), ahead-p.Policy.MaxWait)
}

// refuse turns the draw into one that takes nothing.
func (d *Draw) refuse(why headgate.Reason, retry time.Duration) {
	d.Verdict, d.Reason, d.retry = headgate.Deny, why, retry
	d.to = d.from
}

// present gives the cell's TAT, pulled back to the horizon when the clock has
// stepped back: a key waits for one refill at the most. p is the policy of record,
// which never books further ahead.
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

// explainBucket says what the bucket has left after the draw.
func (p *Plan) explainBucket(d *Draw, decision *headgate.Decision) {
	decision.Limit = p.burst
	decision.ResetAfter = span{d.to.ns - int64(d.now), d.to.part}.ceil()
	edge := span{int64(d.now) + p.refill.ns, p.refill.part}
	decision.Remaining = 0
	if left := edge.sub(d.to, p.den); left.ns >= 0 {
		decision.Remaining = p.wholeUnits(left)
	}
}

// returnTokens gives back the part of the taken units that has not refilled yet.
//
// The units of r stood for the times From to From + q intervals. Later takes
// stand after them, and every unit returned since has moved them forward by one
// interval at the most; so what lies behind now after that shift has refilled,
// whether r had been taken or not, and later decisions may stand on it.
// docs/algorithms.md proves that this never frees too much.
func (p *Plan) returnTokens(c *Cell, r *headgate.Receipt, now headgate.Instant) bool {
	since := int64(c.Returned - r.Returned)
	if r.Cost > int64(math.MaxUint32-c.Returned) {
		c.Epoch++ // What was taken before cannot be returned any more: its shift is lost.
		c.Returned = 0
	} else {
		c.Returned += uint32(r.Cost)
	}
	end := span{int64(r.From), r.FromPart}.add(p.spanOf(r.Cost), p.den)
	tat := span{int64(c.Time), c.Units}
	if since > p.spanLimit() {
		return false
	}
	owed := end.sub(p.spanOf(since), p.den).sub(span{int64(now), 0}, p.den)
	if !owed.after(span{}) {
		return false
	}
	if took := p.spanOf(r.Cost); owed.after(took) {
		owed = took
	}
	tat = tat.sub(owed, p.den)
	c.Time, c.Units = headgate.Instant(tat.ns), tat.part
	return true
}

// spanLimit is the greatest number of units that spanOf takes without overflow.
func (p *Plan) spanLimit() int64 { return greatestBurst(p.Policy.Limit, MaxRefill) }

// overdrawn reports whether departures are booked that are still to come: the
// bucket stands further ahead than taking all of it would put it. Tokens that came
// back to such a bucket would be given out again at the departures of those who wait.
func (p *Plan) overdrawn(c *Cell, now headgate.Instant) bool {
	empty := span{int64(now) + p.refill.ns, p.refill.part}
	return p.Policy.MaxWait > 0 && (span{int64(c.Time), c.Units}).after(empty)
}

// returnDeparture gives a departure back if it is the last one booked: earlier
// ones stay a gap, because the requests behind them keep their times.
func (p *Plan) returnDeparture(c *Cell, r *headgate.Receipt) bool {
	from := span{int64(r.From), r.FromPart}
	if from.add(p.spanOf(r.Cost), p.den) != (span{int64(c.Time), c.Units}) {
		return false
	}
	c.Time, c.Units = r.From, r.FromPart
	return true
}
