package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// Cell is the state of a token bucket, a leaky bucket, a fixed window or a ban. The zero
// Cell is the state of a new key.
//
// For a bucket, Time and Units are the theoretical arrival time (TAT): the instant at which
// the bucket is full again, or the queue is empty. Time is in whole nanoseconds, and Units
// is the fraction of a nanosecond in 1/Count. For a fixed window and a ban, Time is the
// start of the window and Units its count. A window of the calendar also has its last minute in
// Time, and counts before that of the cell: see Count and Ended. A ban without Units has no window.
type Cell struct {
	Time  headgate.Instant
	Units uint64
	// Returned counts the units returned to a bucket, plus renewStep for each change of the
	// epoch. It carries into Epoch. For a fixed window, Returned counts the refunds.
	Returned uint32
	// Policy is the policy of record: the policy of the last take. The store sets Policy after
	// a take, and judges other policies of the same Family with JudgeOf.
	Policy uint16
	// Epoch identifies the receipts that are valid for this state: see Issued. It changes when the
	// cell is reused for another key, when a bucket gets another rate or a ban another policy of
	// record, when units are refunded, and when the state is moved back in time.
	Epoch uint16
}

// renewStep is added to Returned at each change of the epoch. An epoch of 16 bits repeats
// after 65,536 changes. Returned has then moved by more than a bucket of up to 2^28 units
// holds, so a receipt that old returns nothing.
const renewStep = 1 << 12

// renew invalidates the receipts of the cell.
func (c *Cell) renew() { c.add(1<<32 + renewStep) }

// Void empties the cell, and invalidates its receipts.
func (c *Cell) Void() {
	*c = Cell{Policy: c.Policy, Epoch: c.Epoch, Returned: c.Returned}
	c.renew()
}

// countReturned counts units that were returned to a bucket. More units than Returned can
// hold invalidate all receipts.
func (c *Cell) countReturned(units int64) { c.add(min(uint64(units), 1<<32)) }

// add adds to Epoch and Returned, as one number of 48 bits.
func (c *Cell) add(n uint64) {
	n += c.version()
	c.Epoch, c.Returned = uint16(n>>32), uint32(n)
}

func (c *Cell) version() uint64 { return uint64(c.Epoch)<<32 | uint64(c.Returned) }

// Issued reports whether r can return units to the cell. epoch is that of the Draw. A receipt of
// another epoch returns nothing. For a bucket, it does if less than 2^32 units were returned
// since.
func (p *Plan) Issued(c *Cell, epoch uint16, r *headgate.Receipt) bool {
	if !isBucket(p.Policy.Algorithm) {
		return c.Epoch == epoch
	}
	was := Cell{Epoch: epoch, Returned: r.Returned}
	return (c.version()-was.version())&(1<<48-1) < 1<<32
}

// Draw is the result of JudgeCell in the terms of the algorithm. The caller makes and
// takes a Draw while it holds the lock of the cell. Explain converts the Draw to a Decision
// and needs no lock, because it does not read the cell.
type Draw struct {
	Verdict headgate.Verdict
	Reason  headgate.Reason
	// Edges are those of the Op. The caller sets them before JudgeCell, and a plan with a
	// calendar period needs edges that pass CheckEdges.
	Edges *headgate.Edges
	// Ended are the earlier counts of a key that counts in windows of the calendar. The caller sets
	// them before JudgeCell, and keeps them if EndedChanged.
	Ended Ended

	returned uint32
	epoch    uint16
	carried  bool
	changed  bool // Ended
	window   int  // the edge with which the window of the decision begins
	now, at  headgate.Instant
	cost     int64
	retry    time.Duration
	// For a bucket, from is the TAT before the draw, and to the TAT after it is taken. A
	// refusal leaves to equal to from. For a fixed window and a ban, from.ns is the end of the
	// window, to.part is the count, and from.part is above 0 if the end resets units.
	from, to span
}

// JudgeCell decides cost at now into d and takes nothing. If d passes, TakeCell takes it.
// JudgeCell can change the cell: it ends a window that is over, and moves the state
// back after a step back of the clock.
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

// JudgeOf is JudgeCell for a cell whose policy of record belongs to the plan of. p and of
// must have the same Family. JudgeOf converts the count to the terms of p, and leaves
// the policy of record unchanged.
func (p *Plan) JudgeOf(c *Cell, plan *Plan, now headgate.Instant, cost int64, mode headgate.OpKind, d *Draw) {
	switch {
	case plan == p || p.Policy.Algorithm == headgate.FixedWindow:
		p.JudgeCell(c, now, cost, mode, d) // The count of a window is valid under any limit.
	case p.Policy.Algorithm == headgate.Ban:
		carried, judge := *c, plan
		if !plan.isBannedAt(&carried, now) {
			p.carryBan(&carried, now)
			judge = p
		}
		judge.judgeBan(&carried, now, cost, d)
	default:
		p.judgeBucketOf(c, plan, now, cost, mode, d)
	}
}

// TakeOf is TakeCell after JudgeOf. It reports whether p has become the policy of record.
// A take of 0 units does not change the policy of record, except for a ban. A limit of 0
// never becomes the policy of record. During a ban, its policy stays the policy of record.
func (p *Plan) TakeOf(c *Cell, plan *Plan, d *Draw) bool {
	switch {
	case plan == p:
	case p.Policy.Algorithm == headgate.Ban:
		if plan.isBannedAt(c, d.now) {
			c.count(d.at, d.cost)
			return false
		}
		p.carryBan(c, d.now)
		c.Epoch++
	case d.cost == 0 || p.Blocks():
		return false
	case isBucket(p.Policy.Algorithm) && !p.keepsReceipts(plan):
		c.renew()
		d.returned, d.epoch = c.Returned, c.Epoch
	}
	p.TakeCell(c, d)
	return true
}

// keepsReceipts reports whether the receipts of a bucket stay valid when p becomes the policy of
// record after of. The rate at which their units refill must stay the same. If p books
// departures, these can depend on the units of earlier receipts.
func (p *Plan) keepsReceipts(plan *Plan) bool {
	return p.count == plan.count && p.Policy.MaxWait == 0 && !p.leaky
}

// TakeCell counts the draw that JudgeCell has just decided: a draw that passed, or a
// refused draw if the plan CountsRefused.
func (p *Plan) TakeCell(c *Cell, d *Draw) {
	if p.Blocks() {
		return // Such a plan passes only cost 0, which takes nothing.
	}
	switch {
	case isBucket(p.Policy.Algorithm):
		c.Time, c.Units = headgate.Instant(d.to.ns), d.to.part
	case p.Policy.Algorithm == headgate.FixedWindow:
		c.Units = min(c.Units+uint64(d.cost), countCeiling)
		if p.Calendar() && d.cost > 0 {
			c.Time = max(c.Time, countOf(CountBegan(c.Time), d.at))
		}
	default:
		c.count(d.at, d.cost)
	}
}

// Explain writes a draw as a Decision, except the Receipt. It reads no cell.
func (p *Plan) Explain(d *Draw, decision *headgate.Decision) {
	decision.Verdict, decision.Reason = d.Verdict, d.Reason
	decision.RetryAfter = d.retry
	decision.At, decision.Carried = d.at, d.carried
	if isBucket(p.Policy.Algorithm) {
		p.explainBucket(d, decision)
	} else {
		p.explainFixed(d, decision)
	}
}

// EndedChanged reports whether JudgeCell or RefundCell has changed Ended.
func (d *Draw) EndedChanged() bool { return d.changed }

// Epoch returns the epoch of the cell when the draw was made.
func (d *Draw) Epoch() uint16 { return d.epoch }

// Receipt writes the units of a taken draw into r. The store adds the Epoch of the draw and
// the location of the state.
func (p *Plan) Receipt(d *Draw, r *headgate.Receipt) {
	r.Cost, r.Returned = d.cost, d.returned
	if p.Policy.Algorithm == headgate.FixedWindow {
		r.From, r.FromPart = d.at, 0
		return
	}
	r.From, r.FromPart = headgate.Instant(d.from.ns), d.from.part
}

// ReturnCell gives back the units of r to the cell, and reports whether any units were
// returned. r must be Issued by the cell, and p must be the plan that issued r.
func (p *Plan) ReturnCell(c *Cell, e *Ended, r *headgate.Receipt, now headgate.Instant) bool {
	switch p.Policy.Algorithm {
	case headgate.FixedWindow:
		return p.returnFixed(c, e, r, now)
	case headgate.Ban:
		return false // Attempts cannot be returned.
	default:
		back := p.notKept(r)
		switch {
		case back.Cost <= 0:
			return false
		case p.leaky || p.overdrawn(c, now):
			return p.returnDeparture(c, &back)
		default:
			return p.returnTokens(c, &back, now)
		}
	}
}

// notKept gives the receipt of a bucket's units without the kept units, which are the first.
func (p *Plan) notKept(r *headgate.Receipt) headgate.Receipt {
	back := *r
	back.Cost, back.Kept = r.Units(), 0
	if back.Cost > 0 && r.Kept > 0 {
		from := span{int64(r.From), r.FromPart}.add(p.spanOf(r.Kept), p.den)
		back.From, back.FromPart = headgate.Instant(from.ns), from.part
	}
	return back
}

// CellFreeAt returns the instant from which the cell has the same effect as a zero Cell.
func (p *Plan) CellFreeAt(c *Cell) headgate.Instant {
	switch {
	case isBucket(p.Policy.Algorithm):
		return headgate.Instant(span{int64(c.Time), c.Units}.ceil())
	case c.Units == 0:
		return 0
	case p.Calendar():
		return CountFreeAt(p.Policy.Limit.Calendar, c.Time)
	case p.Policy.Algorithm == headgate.FixedWindow:
		return (c.Time + headgate.Instant(p.per)).Add(p.paying(c.Units, p.count))
	default:
		return p.banEnds(c)
	}
}
