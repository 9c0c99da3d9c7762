package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// Whole reports whether the plan is a token bucket whose interval is a whole number of
// nanoseconds. Most limits have such an interval. The state of such a bucket is one number,
// its Cell's Time, and Step decides it in a few instructions. Step requires that the
// Cell's Units are 0. Units can be above 0 after a policy with another Count was the
// policy of record, until the bucket is full.
func (p *Plan) Whole() bool { return p.wholeStep }

// Step is JudgeCell and TakeCell in one step, for a Whole plan. It returns the bucket's new
// Time if cost passes at now. If cost does not pass, call RefuseStep, or JudgeCell if
// RefuseStep returns false.
func (p *Plan) Step(tat, now headgate.Instant, cost int64) (next headgate.Instant, passes bool) {
	if cost > p.burst {
		return 0, false
	}
	next = max(tat, now) + headgate.Instant(cost*p.step)
	return next, next <= now+headgate.Instant(p.refill.ns)
}

// ExplainStep writes the Decision for a Step that passed. The store completes the Receipt.
func (p *Plan) ExplainStep(now, next headgate.Instant, cost int64, d *headgate.Decision) {
	p.PassStep(now, next, d)
	d.Receipt.Cost = cost
	d.Receipt.From, d.Receipt.FromPart = next-headgate.Instant(cost*p.step), 0
}

// PassStep is ExplainStep without the Receipt. It is small enough to be inlined.
func (p *Plan) PassStep(now, next headgate.Instant, d *headgate.Decision) {
	d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
	d.Limit = p.burst
	d.ResetAfter = time.Duration(next - now)
	d.Remaining = p.wholeSteps(int64(now-next) + p.refill.ns)
	d.At, d.Carried = now, false
}

// RefuseStep writes the Decision for a Step that did not pass, if the bucket has too few
// units. It returns false for other causes.
func (p *Plan) RefuseStep(tat, now, next headgate.Instant, cost int64, d *headgate.Decision) bool {
	edge := now + headgate.Instant(p.refill.ns)
	if cost > p.burst || tat > edge {
		return false
	}
	tat = max(tat, now)
	d.Verdict, d.Reason, d.RetryAfter = headgate.Deny, headgate.OverLimit, time.Duration(next-edge)
	d.Limit = p.burst
	d.ResetAfter = time.Duration(tat - now)
	d.Remaining = p.wholeSteps(int64(edge - tat))
	d.At, d.Carried = now, false
	d.Receipt = headgate.Receipt{}
	return true
}
