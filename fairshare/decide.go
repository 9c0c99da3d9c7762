package fairshare

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// limit gives what the client may use of the cycle: its size, and at once its
// default share when it has lent some of that.
func (c *cycle) limit(x *cell) int64 {
	if c.Reclaim == AtOnce {
		return max(x.size.Load(), x.fair.Load())
	}
	return x.size.Load()
}

// admit fills in the decision on what was taken at t. It does so where the caller has
// it: to copy one that has just been written, field by field, costs more than all else.
func (c *cycle) admit(d *headgate.Decision, x *cell, t headgate.Instant, left int64) {
	limit := c.limit(x)
	d.Verdict, d.Reason, d.Limit, d.Remaining = headgate.Allow, headgate.WithinLimit, limit, max(0, limit-x.used(left))
	d.ResetAfter, d.At = c.end.Sub(t), t
}

// refuse fills in the decision on what could not be, and counts it.
func (c *cycle) refuse(d *headgate.Decision, x *cell, t headgate.Instant, cost int64) {
	n := x.client.refused.Add(uint64(c.counted(cost)))
	limit := c.limit(x)
	d.Verdict, d.Reason, d.Limit, d.Remaining = headgate.Deny, headgate.OverShare, limit, max(0, min(limit, x.left.Load()))
	d.ResetAfter, d.At = c.end.Sub(t), t
	if cost > c.Capacity {
		d.Reason = headgate.Never
		return
	}
	d.RetryAfter = d.ResetAfter + jitter(uint64(t)^n<<32, c.Cycle/jitterPart)
}

// counted gives what of a cost counts as demand: one above the capacity is no more
// than all of it.
func (c *cycle) counted(cost int64) int64 { return min(cost, max(1, c.Capacity)) }

// jitterPart is the part of a cycle over which those come back that were refused.
const jitterPart = 2

// jitter spreads times over 0 to most. It is Steele's mix of a counter, which differs
// between neighbours in every bit.
func jitter(n uint64, most time.Duration) time.Duration {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	n ^= n >> 31
	part, _ := bits.Mul64(n, uint64(most))
	return time.Duration(part)
}
