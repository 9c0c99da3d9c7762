package limit

import "github.com/headgate/headgate"

// Cell is the state of a token bucket, a leaky bucket or a fixed window. The
// zero Cell is a key that was never seen.
//
// For the buckets Time and Units are the theoretical arrival time (whole
// nanoseconds and the part of one more in 1/den): the instant at which the
// bucket is full again, or the queue empty. For a fixed window Time is its
// start and Units its count.
type Cell struct {
	Time  headgate.Instant
	Units uint64
	// Policy is the policy that the cell was last counted under; whoever keeps the
	// cell sets it and calls CarryCell when it changes.
	Policy headgate.PolicyID
	// Returned counts the units returned to a bucket, modulo 2^32.
	Returned uint32
}

// JudgeCell decides cost at now into d and takes nothing: if d passes, TakeCell
// takes it. It may tidy the cell: roll a window over, or pull a state that the
// clock has left behind back to the present.
//
// cost is from 0 to headgate.MaxUnits.
func (p *Plan) JudgeCell(c *Cell, now headgate.Instant, cost int64, mode headgate.Mode, d *headgate.Decision) {
	if p.Policy.Algorithm == headgate.FixedWindow {
		p.judgeFixed(c, now, cost, d)
		return
	}
	p.judgeBucket(c, now, cost, mode, d)
}

// TakeCell counts what JudgeCell has just decided: a passed Decision, or, for a
// window with CountRejected, a refused one.
func (p *Plan) TakeCell(c *Cell, d *headgate.Decision) {
	if p.Policy.Algorithm == headgate.FixedWindow {
		c.Units = min(c.Units+uint64(d.Receipt.Cost), countCeiling)
		return
	}
	next := span{int64(d.Receipt.From), d.Receipt.FromPart}.add(p.spanOf(d.Receipt.Cost), p.den)
	c.Time, c.Units = headgate.Instant(next.ns), next.part
}

// ReturnCell gives back what r took from the cell, at now, and reports whether
// anything came back. sameLimit tells whether the cell is still under the policy
// that r was taken under.
func (p *Plan) ReturnCell(c *Cell, r *headgate.Receipt, now headgate.Instant, sameLimit bool) bool {
	switch {
	case p.Policy.Algorithm == headgate.FixedWindow:
		return p.returnFixed(c, r)
	case !sameLimit:
		return false // The receipt's times are of another rate.
	case p.Policy.Algorithm == headgate.LeakyBucket:
		return p.returnDeparture(c, r)
	default:
		return p.returnTokens(c, r, now)
	}
}

// CarryCell restates a cell that was kept under the plan old for the plan p: what
// was used stays used, as far as p has room for it.
func (p *Plan) CarryCell(c *Cell, old *Plan, now headgate.Instant) {
	switch {
	case old.Policy.Algorithm != p.Policy.Algorithm:
		*c = Cell{Policy: c.Policy}
	case p.Policy.Algorithm == headgate.FixedWindow:
		p.carryFixed(c, old, now)
	default:
		p.carryBucket(c, old, now)
	}
}

// CellFreeAt gives the instant from which the cell holds nothing that counts.
func (p *Plan) CellFreeAt(c *Cell) headgate.Instant {
	if p.Policy.Algorithm == headgate.FixedWindow {
		if c.Units == 0 {
			return 0
		}
		return c.Time + headgate.Instant(p.per)
	}
	return headgate.Instant(span{int64(c.Time), c.Units}.ceil())
}
