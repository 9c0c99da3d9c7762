package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// Cell is the state of a token bucket, a leaky bucket, a fixed window or a ban.
// The zero Cell is a key that was never seen.
//
// For the buckets Time and Units are the theoretical arrival time (whole
// nanoseconds and the part of one more in 1/Count): the instant at which the
// bucket is full again, or the queue empty. For a fixed window and a ban Time is
// the start of the window and Units its count; a ban without Units has no window.
type Cell struct {
	Time  headgate.Instant
	Units uint64
	// Returned counts the units returned to a bucket in this epoch.
	Returned uint32
	// Policy is the policy of record: the one that took last. The store sets it after
	// a take, and judges other policies of the same Family with JudgeOf.
	Policy uint16
	// Epoch tells which receipts are still valid for this state. It changes when the
	// cell goes to another key, when a bucket or a ban gets another policy of record,
	// and when the state is pulled back in time; a receipt of another epoch is not
	// returned.
	Epoch uint16
}

// renewStep is how far Returned moves at each change of the epoch. An epoch of 16 bits
// repeats after 65,536 changes; with this step Returned then differs by more than a
// bucket of up to 2^28 units holds, so a receipt that old returns nothing.
const renewStep = 1 << 12

// renew voids the receipts of a bucket.
func (c *Cell) renew() {
	c.Epoch++
	c.Returned += renewStep
}

// Draw is what JudgeCell has decided, in the terms of the algorithm. It is made
// and taken while the cell is held; Explain puts it into the words of a Decision
// afterwards, when the cell may be another's.
type Draw struct {
	Verdict headgate.Verdict
	Reason  headgate.Reason

	returned uint32
	epoch    uint16
	now, at  headgate.Instant
	cost     int64
	retry    time.Duration
	// from is where a bucket's TAT stood, and to where it stands when the draw is
	// taken; a draw that is not taken leaves it at from. For a fixed window and a ban
	// from is the end, and the part of to the count.
	from, to span
}

// JudgeCell decides cost at now into d and takes nothing: if d passes, TakeCell
// takes it. It may tidy the cell: roll a window over, or pull a state that the
// clock has left behind back to the present.
//
// cost is from 0 to headgate.MaxUnits.
func (p *Plan) JudgeCell(c *Cell, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	switch {
	case isBucket(p.Policy.Algorithm):
		p.judgeBucket(c, now, cost, mode, d)
	case p.Policy.Algorithm == headgate.FixedWindow:
		p.judgeFixed(c, now, cost, d)
	default:
		p.judgeBan(c, now, cost, d)
	}
}

// JudgeOf is JudgeCell for a cell whose policy of record is that of the plan of, which
// has the Family of p. It judges what was counted in p's terms, and leaves the cell
// under of: a refusal or a look by another policy changes nothing.
func (p *Plan) JudgeOf(c *Cell, of *Plan, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	switch {
	case of == p || p.Policy.Algorithm == headgate.FixedWindow:
		p.JudgeCell(c, now, cost, mode, d) // The count of a window has no terms.
	case p.Policy.Algorithm == headgate.Ban:
		carried, judge := *c, of
		if !of.isBannedAt(&carried, now) {
			p.carryBan(&carried, now)
			judge = p
		}
		judge.judgeBan(&carried, now, cost, d)
	default:
		p.judgeBucketOf(c, of, now, cost, mode, d)
	}
}

// TakeOf is TakeCell after JudgeOf, and reports whether p is the policy of record from
// now on. A take of nothing does not change the policy of record, except for a ban,
// and a limit of 0 never becomes one. A ban under way keeps the policy that set it.
func (p *Plan) TakeOf(c *Cell, of *Plan, d *Draw) bool {
	switch {
	case of == p:
	case p.Policy.Algorithm == headgate.Ban:
		if of.isBannedAt(c, d.now) {
			c.count(d.at, d.cost)
			return false
		}
		p.carryBan(c, d.now)
		c.Epoch++
	case d.cost == 0 || p.Blocks():
		return false
	case isBucket(p.Policy.Algorithm):
		c.renew()
		d.returned, d.epoch = c.Returned, c.Epoch
	}
	p.TakeCell(c, d)
	return true
}

// TakeCell counts what JudgeCell has just decided: a passed draw, or, if the plan
// CountsRefused, a refused one.
func (p *Plan) TakeCell(c *Cell, d *Draw) {
	if p.Blocks() {
		return // It passes cost 0 alone, which takes nothing.
	}
	switch {
	case isBucket(p.Policy.Algorithm):
		c.Time, c.Units = headgate.Instant(d.to.ns), d.to.part
	case p.Policy.Algorithm == headgate.FixedWindow:
		c.Units = min(c.Units+uint64(d.cost), countCeiling)
	default:
		c.count(d.at, d.cost)
	}
}

// Explain puts a draw into words, all but the Receipt. It reads no cell.
func (p *Plan) Explain(d *Draw, decision *headgate.Decision) {
	decision.Verdict, decision.Reason = d.Verdict, d.Reason
	decision.RetryAfter = d.retry
	decision.At = d.at
	if isBucket(p.Policy.Algorithm) {
		p.explainBucket(d, decision)
	} else {
		p.explainFixed(d, decision)
	}
}

// Epoch gives the epoch of the cell that the draw was made on.
func (d *Draw) Epoch() uint16 { return d.epoch }

// Receipt says what a draw that was taken has taken; the store adds how it finds
// it again, and the draw's Epoch.
func (p *Plan) Receipt(d *Draw, r *headgate.Receipt) {
	r.Cost, r.Returned = d.cost, d.returned
	if p.Policy.Algorithm == headgate.FixedWindow {
		r.From, r.FromPart = d.at, 0
		return
	}
	r.From, r.FromPart = headgate.Instant(d.from.ns), d.from.part
}

// ReturnCell gives back what r, a receipt of the cell's epoch, took from the cell,
// at now, and reports whether anything came back.
func (p *Plan) ReturnCell(c *Cell, r *headgate.Receipt, now headgate.Instant) bool {
	switch p.Policy.Algorithm {
	case headgate.FixedWindow:
		return p.returnFixed(c, r)
	case headgate.LeakyBucket:
		return p.returnDeparture(c, r)
	case headgate.Ban:
		return false // An attempt that was made stays made.
	default:
		if p.overdrawn(c, now) {
			return p.returnDeparture(c, r)
		}
		return p.returnTokens(c, r, now)
	}
}

// CellFreeAt gives the instant from which the cell holds nothing that counts.
func (p *Plan) CellFreeAt(c *Cell) headgate.Instant {
	switch {
	case isBucket(p.Policy.Algorithm):
		return headgate.Instant(span{int64(c.Time), c.Units}.ceil())
	case c.Units == 0:
		return 0
	case p.Policy.Algorithm == headgate.FixedWindow:
		return c.Time + headgate.Instant(p.per)
	default:
		return p.banEnds(c)
	}
}
