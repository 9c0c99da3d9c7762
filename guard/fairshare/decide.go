package fairshare

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// limit returns the units that the client can use in the cycle. Under AtOnce that is at
// least the default share, even if the client has lent some of it. So it is for newcomers.
func (c *cycle) limit(x *cell) int64 {
	if c.Reclaim == AtOnce || x.newcomer {
		return max(x.size.Load(), x.fair.Load())
	}
	return x.size.Load()
}

// admit writes the decision for units taken at t. It writes into the caller's Decision,
// because a copy of the struct costs more than the rest of the decision.
func (c *cycle) admit(d *headgate.Decision, x *cell, t headgate.Instant, left int64) {
	limit := c.limit(x)
	d.Verdict, d.Reason, d.Limit, d.Remaining = headgate.Allow, headgate.WithinLimit, limit, max(0, limit-x.used(left))
	d.ResetAfter, d.At = c.end.Sub(t), t
}

// refuse writes the decision for a refused request, and counts the request as demand.
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
	if x.newcomer && x.used(x.left.Load())+cost <= x.fair.Load() {
		d.RetryAfter = x.client.retryAfter(d.RetryAfter, t)
	}
}

// counted returns the part of a cost that counts as demand: at most the capacity.
func (c *cycle) counted(cost int64) int64 { return min(cost, max(1, c.Capacity)) }

// Refused requests retry within the first 1/jitterPart of the next cycle.
const jitterPart = 2

// jitter returns a pseudorandom time from 0 to most. It uses Steele's SplitMix64 mix, so
// neighbouring values of n give unrelated times.
func jitter(n uint64, most time.Duration) time.Duration {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	n ^= n >> 31
	part, _ := bits.Mul64(n, uint64(most))
	return time.Duration(part)
}
