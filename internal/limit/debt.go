package limit

import (
	"time"

	"github.com/headgate/headgate"
)

// A debt is what a Charge has counted beyond the limit. Its units count as soon as they fit,
// before any request. docs/algorithms.md proves that the mean of what counts is at most the limit.

// LargestDebt returns the largest number of units that a policy with a Count above 0 can owe, so
// that every debt is paid within MaxRefill.
func LargestDebt(policy headgate.Policy) int64 {
	l := policy.Limit
	switch {
	case l.Calendar != headgate.NoCalendar:
		return headgate.MaxUnits - l.Count
	case isBucket(policy.Algorithm):
		return greatestBurst(l, MaxRefill) - Room(policy)
	default: // Two periods less, for the window of the debt and for the next one.
		return max(0, min(greatestBurst(l, MaxRefill-2*l.Per), headgate.MaxUnits-l.Count))
	}
}

// charge bounds the units of a Charge: those up to the limit and the debt.
func (p *Plan) charge(cost, used int64) int64 { return min(cost, max(0, p.count+p.owe-used)) }

// ChargeCell counts up to cost units in the cell, whose policy of record belongs to the plan of. It
// returns their number, and whether p has become the policy of record. d has the Edges of the Op
// and the Ended counts, as for JudgeCell.
func (p *Plan) ChargeCell(c *Cell, plan *Plan, now headgate.Instant, cost int64, d *Draw) (units int64, recorded bool) {
	p.JudgeOf(c, plan, now, 0, headgate.Peek, d)
	switch {
	case p.count == 0:
		return 0, false
	case p.Calendar():
		used, _ := d.unitsIn(c, d.Edges[d.window])
		units = p.charge(cost, int64(used))
	case p.Policy.Algorithm == headgate.FixedWindow:
		units = p.charge(cost, int64(c.Units))
	default:
		units = min(cost, p.chargeable(d))
		d.to = d.from.add(p.spanOf(units), p.den)
	}
	d.cost = units
	return units, p.TakeOf(c, plan, d)
}

// chargeable returns the units that a Charge of a bucket can count.
func (p *Plan) chargeable(d *Draw) int64 {
	farthest := span{int64(d.now), 0}.add(p.refill, p.den).add(p.spanOf(p.owe), p.den)
	left := farthest.sub(d.from, p.den)
	if left.ns < 0 {
		return 0
	}
	return p.wholeUnits(left)
}

// carry returns the units of a fixed window that its key still owes after a number of windows.
func (p *Plan) carry(units uint64, windows int64) uint64 {
	if p.owe == 0 {
		return 0
	}
	left := min(int64(units), p.count+p.owe)
	if windows >= divideUpUnits(left, p.count) {
		return 0
	}
	return uint64(left - windows*p.count)
}

// paying returns for how long after the end of its window a count of units keeps a request of cost
// from passing. A cost of Count passes when no unit is left.
func (p *Plan) paying(units uint64, cost int64) time.Duration {
	return time.Duration(WindowsOfDebt(p.count, p.owe, int64(units), cost) * p.per)
}

// WindowsOfDebt returns the number of fixed windows, after that of the units, in which a request of
// cost does not pass because of a debt of up to owe units.
func WindowsOfDebt(count, owe, units, cost int64) int64 {
	left := min(units, count+owe) + cost
	if owe == 0 || left <= 2*count {
		return 0
	}
	return divideUpUnits(left-count, count) - 1
}

func divideUpUnits(a, b int64) int64 { return int64(divideUp(uint64(a), uint64(b))) }

// owes reports whether the sub-windows of one window have more than Count units.
func (p *Plan) owes(w *Windows) bool { return p.owe > 0 && w.Total-*w.at(w.Newest + 1) > p.count }

// payWindows moves a ring with a debt towards sub-window k, until the debt is paid. Each new
// sub-window leaves Count units in the N sub-windows before it, and gets the others. After N
// steps, the counters are as before, with Count units less in the newest.
func (p *Plan) payWindows(w *Windows, k int64) {
	n := int64(len(w.Counters) - 1)
	for steps := int64(0); w.Newest < k && p.owes(w); steps++ {
		if steps > n {
			if rounds := min((k-w.Newest)/n, *w.at(w.Newest)/p.count-1); rounds > 0 {
				*w.at(w.Newest) -= rounds * p.count
				w.Total -= rounds * p.count
				w.relabel(w.Newest + rounds*n)
				continue
			}
		}
		p.stepOwing(w)
	}
}

// stepOwing moves a ring with a debt by one sub-window.
func (p *Plan) stepOwing(w *Windows) {
	last, next := w.at(w.Newest), w.at(w.Newest+1)
	w.Total -= *next
	over := min(w.Total-p.count, *last)
	*last -= over
	*next = min(over, p.owe) // Another version may have charged more.
	w.Total -= over - *next
	w.Newest++
}

// paidWindows returns the ring as it will be when its debt is paid, in the memory of counters.
func (p *Plan) paidWindows(w *Windows, counters []int64) Windows {
	paid := *w
	paid.Counters = counters[:copy(counters, w.Counters)]
	p.payWindows(&paid, 1<<62)
	return paid
}

// ChargeWindows counts up to cost units in the plan's ring, and returns their number. The store adds
// them to the other rings with CountWindows, at the time at.
func (p *Plan) ChargeWindows(w *Windows, now headgate.Instant, cost int64) (units int64, at headgate.Instant) {
	at = p.advance(w, now)
	if p.count == 0 {
		return 0, at
	}
	_, elapsed := p.gridOf(w).place(at)
	oldest := *w.at(w.Newest + 1)
	units = p.charge(cost, w.Total-oldest+weigh(oldest, uint64(p.per)-elapsed, uint64(p.per)))
	w.count(units)
	return units, at
}

// ChargeLog counts up to cost units, and returns their number. The log must have Room for an entry.
func (p *Plan) ChargeLog(l *Log, now headgate.Instant, cost int64) int64 {
	at := p.expire(l, now)
	if p.count == 0 {
		return 0
	}
	units := p.charge(cost, l.Units+l.Owed)
	fits := min(units, max(0, p.count-l.Units))
	l.Owed += units - fits
	if fits > 0 {
		l.add(at, fits)
	}
	p.trim(l, at)
	return units
}

// payLog counts the units of a debt that fit at now: each of them takes the place of a unit when
// that unit leaves the window.
func (p *Plan) payLog(l *Log, now headgate.Instant) {
	l.Owed = min(l.Owed, p.owe) // Another version may have charged more.
	if l.Len == 0 {
		l.Units = 0
		if units := min(l.Owed, p.count); units > 0 {
			l.add(now, units)
			l.Owed -= units
		}
		return
	}
	if units := min(l.Owed, p.count-l.Units); units > 0 { // A receipt came back, or the limit was raised.
		l.add(l.newest(), units)
		l.Owed -= units
	}
	per := headgate.Instant(p.per)
	for l.Owed > 0 && l.oldest()+per <= now {
		rounds := int64(0)
		if l.Units == p.count && l.newest()+per <= now {
			rounds = min(l.Owed/l.Units, int64((now-l.newest())/per))
		}
		if rounds > 0 {
			l.later(headgate.Instant(rounds) * per)
			l.Owed -= rounds * l.Units
			continue
		}
		at := l.oldest() + per
		l.dropOldest()
		if units := min(l.Owed, p.count-l.Units); units > 0 {
			l.add(at, units)
			l.Owed -= units
		}
	}
}

// later moves all entries forward in time.
func (l *Log) later(by headgate.Instant) {
	for i := range l.Len {
		l.Ring[l.slot(i)] += int64(by)
	}
}

// leavesOwing returns the time at which n units have left a log with a debt. A unit of the debt
// leaves one window after the unit whose place it takes.
func (p *Plan) leavesOwing(l *Log, n int64) headgate.Instant {
	if n <= l.Units {
		return p.entryLeavesAt(l, n)
	}
	n -= l.Units
	windows := (n - 1) / p.count
	return p.entryLeavesAt(l, l.Units-p.count+n-windows*p.count) + headgate.Instant((windows+1)*p.per)
}
