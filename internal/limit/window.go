package limit

import (
	"fmt"
	"math/bits"

	"github.com/headgate/headgate"
)

// Windows is the state of a sliding window: N+1 counters of sub-windows in a ring that the
// store owns. Newest is the number of the newest sub-window since the epoch.
//
// Policies of one Family and one N count in one ring. For another N the store keeps another
// ring, up to MaxRings. SeedWindows fills a new ring, and CountWindows adds what other
// rings' policies have taken.
type Windows struct {
	// Counters has SubWindows+1 entries. Entry k modulo that length counts sub-window k.
	Counters []int64
	Newest   int64
	Total    int64
	// Moved counts the long steps back of the clock that moved the counters. The store adds
	// Moved to the epoch of the state, because receipts no longer find their sub-windows.
	Moved uint16
}

// MaxRings is the number of values of SubWindows that one state counts for at once. A
// further ring replaces the oldest ring. If the replaced ring is needed again, it is filled
// from the others.
const MaxRings = 4

// Rings reports whether w is a ring for the plan's N.
func (p *Plan) Rings(w *Windows) bool { return len(w.Counters) == p.Policy.SubWindows+1 }

// WindowCounters returns the number of counters that the plan needs.
func (p *Plan) WindowCounters() int { return p.Policy.SubWindows + 1 }

// grid is a period divided into n sub-windows.
type grid struct{ n, per uint64 }

// gridOf returns the plan's period divided into the sub-windows of w.
func (p *Plan) gridOf(w *Windows) grid { return grid{uint64(len(w.Counters) - 1), uint64(p.per)} }

// place returns the sub-window k that contains t, and its elapsed time in 1/N nanoseconds:
// t*N = k*Per + elapsed. So N need not divide the period.
func (g grid) place(t headgate.Instant) (k int64, elapsed uint64) {
	hi, lo := bits.Mul64(uint64(t), g.n)
	q, r := bits.Div64(hi, lo, g.per)
	return int64(q), r
}

// startOf returns the first nanosecond of sub-window k.
func (g grid) startOf(k int64) headgate.Instant {
	hi, lo := bits.Mul64(uint64(k), g.per)
	q, r := bits.Div64(hi, lo, g.n)
	if r > 0 {
		q++
	}
	return headgate.Instant(q)
}

func (w *Windows) at(k int64) *int64 { return &w.Counters[k%int64(len(w.Counters))] }

// JudgeWindows decides cost at now into d and takes nothing. It clears sub-windows that have
// left the window. The estimate is the sum of the full sub-windows, plus the oldest one
// weighted by the part that is still inside, rounded down.
func (p *Plan) JudgeWindows(w *Windows, now headgate.Instant, cost int64, d *headgate.Decision) {
	g := p.gridOf(w)
	at := p.advance(w, now)
	k, elapsed := g.place(at)
	oldest := *w.at(k + 1) // The ring has N+1 entries, so k+1 is the entry of k-N.
	used := w.Total - oldest + weigh(oldest, uint64(p.per)-elapsed, uint64(p.per))
	d.At, d.Carried, d.Limit = at, false, p.count
	d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
	d.Receipt = headgate.Receipt{Cost: cost, From: at}
	used = min(used, p.count) // Counted refusals can exceed Count.
	total := w.Total
	switch {
	case cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.Never
	case used+cost > p.count:
		d.Verdict, d.Reason = headgate.Deny, headgate.OverLimit
		d.RetryAfter = p.passesAt(w, at, p.count-cost).Sub(now)
	default:
		used += cost
		total += cost
	}
	d.Remaining = max(0, p.count-used)
	d.ResetAfter = 0
	switch {
	case p.owes(w):
		d.ResetAfter = p.WindowsFreeAt(w).Sub(now)
	case total > 0:
		newest := k
		if d.Verdict == headgate.Deny || cost == 0 {
			newest = w.newestUsed()
		}
		d.ResetAfter = g.startOf(newest + int64(len(w.Counters))).Sub(now)
	}
}

// weigh returns count x part/whole, rounded down. part is at most whole.
func weigh(count int64, part, whole uint64) int64 {
	hi, lo := bits.Mul64(uint64(count), part)
	q, _ := bits.Div64(hi, lo, whole)
	return int64(q)
}

// advance clears the sub-windows that have left the window, pays a debt, and returns the time of
// the decision. After a step back of up to one window, that time is the start of the
// newest sub-window. After a longer step, the counters move to the present.
func (p *Plan) advance(w *Windows, now headgate.Instant) headgate.Instant {
	g := p.gridOf(w)
	k, _ := g.place(now)
	n := int64(len(w.Counters))
	switch back := w.Newest - k; {
	case back == 0:
		return now
	case back > 0 && back < n:
		return g.startOf(w.Newest)
	case back > 0:
		w.relabel(k)
		w.Moved++
		return now
	}
	if p.owes(w) {
		p.payWindows(w, k)
	}
	for i := max(w.Newest+1, k-n+1); i <= k; i++ {
		w.Total -= *w.at(i)
		*w.at(i) = 0
	}
	w.Newest = k
	return now
}

// relabel moves the counters so that the newest is sub-window k.
func (w *Windows) relabel(k int64) {
	n := int64(len(w.Counters))
	rotateLeft(w.Counters, int(((w.Newest-k)%n+n)%n))
	w.Newest = k
}

// rotateLeft moves every counter by places towards index 0, with three reversals.
func rotateLeft(c []int64, by int) {
	reverse(c[:by])
	reverse(c[by:])
	reverse(c)
}

func reverse(c []int64) {
	for i, j := 0, len(c)-1; i < j; i, j = i+1, j-1 {
		c[i], c[j] = c[j], c[i]
	}
}

// passesAt returns the first nanosecond at which the estimate is at most room, if no
// further units are counted. It reads each sub-window once.
func (p *Plan) passesAt(w *Windows, at headgate.Instant, room int64) headgate.Instant {
	g := p.gridOf(w)
	if p.owes(w) {
		var counters [MaxSubWindows + 1]int64
		paid := p.paidWindows(w, counters[:])
		return p.passesAt(&paid, g.startOf(paid.Newest), room)
	}
	k, elapsed := g.place(at)
	per, n := uint64(p.per), int64(len(w.Counters))
	whole := w.Total
	for j := range n {
		oldest := *w.at(k + j + 1)
		whole -= oldest
		if whole > room {
			continue
		}
		// floor(oldest*(per-e)/per) <= left for every e >= least.
		least := uint64(0)
		if left := room - whole; oldest > left {
			least = per - weighUp(uint64(left)+1, per, uint64(oldest)) + 1
		}
		if j == 0 {
			least = max(least, elapsed)
		}
		if least >= per {
			continue // Only the next sub-window frees enough units.
		}
		ahead := uint64(j)*per + least - elapsed
		return at + headgate.Instant(divideUp(ahead, g.n))
	}
	return g.startOf(k + n)
}

// weighUp returns count x part/whole, rounded up, for results within a uint64.
func weighUp(count, part, whole uint64) uint64 {
	hi, lo := bits.Mul64(count, part)
	q, r := bits.Div64(hi, lo, whole)
	if r > 0 {
		q++
	}
	return q
}

func divideUp(a, b uint64) uint64 { return (a + b - 1) / b }

// newestUsed returns the newest sub-window with a count above 0.
func (w *Windows) newestUsed() int64 {
	for k := w.Newest; k > w.Newest-int64(len(w.Counters)); k-- {
		if *w.at(k + int64(len(w.Counters))) > 0 {
			return k
		}
	}
	return w.Newest
}

// TakeWindows counts what JudgeWindows has just decided at now. The RetryAfter of a refusal
// then includes the counted attempt.
func (p *Plan) TakeWindows(w *Windows, now headgate.Instant, d *headgate.Decision) {
	w.count(d.Receipt.Cost)
	if d.Verdict == headgate.Deny {
		d.RetryAfter = p.passesAt(w, d.At, p.count-d.Receipt.Cost).Sub(now)
		d.ResetAfter = p.WindowsFreeAt(w).Sub(now)
	}
}

// count adds units to the newest sub-window.
func (w *Windows) count(units int64) {
	units = min(units, countCeiling-*w.at(w.Newest))
	*w.at(w.Newest) += units
	w.Total += units
}

// CountWindows counts units in the ring w that a policy with another N took at the time at.
func (p *Plan) CountWindows(w *Windows, at headgate.Instant, cost int64) {
	p.advance(w, at)
	w.count(cost)
}

// SeedWindows fills the new ring w from the ring from, which has another N. Each count moves
// to the newest sub-window that its old sub-window overlaps. No count stays in the oldest
// sub-window, which counts only partly, so no unit expires earlier than before. The store
// uses the ring with the largest N as from.
func (p *Plan) SeedWindows(w, from *Windows, now headgate.Instant) {
	to, old := p.gridOf(w), p.gridOf(from)
	now = p.advance(from, now)
	clear(w.Counters)
	w.Newest, _ = to.place(now)
	w.Total = 0
	n := int64(len(w.Counters))
	for k := max(from.Newest-int64(len(from.Counters))+1, 0); k <= from.Newest; k++ {
		end := min(old.startOf(k+1)-1, now)
		if at, _ := to.place(end); at > w.Newest-n {
			*w.at(max(at, w.Newest-n+2)) += *from.at(k)
			w.Total += *from.at(k)
		}
	}
}

// ReturnWindows removes the units of r from their sub-window, in a ring with any N. It
// reports whether any units were still counted.
func (p *Plan) ReturnWindows(w *Windows, r *headgate.Receipt) bool {
	k, _ := p.gridOf(w).place(r.From)
	if k > w.Newest || k <= w.Newest-int64(len(w.Counters)) {
		return false
	}
	units := min(*w.at(k), r.Units())
	*w.at(k) -= units
	w.Total -= units
	return units > 0
}

// WindowsFreeAt returns the instant from which a ring with any N has the same effect as an
// empty ring.
func (p *Plan) WindowsFreeAt(w *Windows) headgate.Instant {
	if w.Total == 0 {
		return 0
	}
	if p.owes(w) {
		var counters [MaxSubWindows + 1]int64
		paid := p.paidWindows(w, counters[:])
		return p.WindowsFreeAt(&paid)
	}
	return p.gridOf(w).startOf(w.newestUsed() + int64(len(w.Counters)))
}

// WindowsPassAt is CellPassesAt for a sliding window. It may move the counters to now.
func (p *Plan) WindowsPassAt(w *Windows, now headgate.Instant) headgate.Instant {
	if w.Total < p.count {
		return now
	}
	var d headgate.Decision
	p.JudgeWindows(w, now, 1, &d)
	return passesAt(d.Verdict, d.Reason, now, d.RetryAfter)
}

// RefundWindows removes up to cost units from a ring with any N, from the newest sub-window on.
// It reports whether any units were removed. The store then changes the epoch of the state.
func (p *Plan) RefundWindows(w *Windows, now headgate.Instant, cost int64) bool {
	p.advance(w, now)
	n := int64(len(w.Counters))
	left := cost
	for k := w.Newest + n; k > w.Newest && left > 0; k-- {
		units := min(*w.at(k), left)
		*w.at(k) -= units
		w.Total -= units
		left -= units
	}
	return left < cost
}

func validateSubWindows(p headgate.Policy) error {
	if err := validateUnits(p); err != nil {
		return err
	}
	if p.SubWindows < 1 || p.SubWindows > MaxSubWindows {
		return &PolicyError{"sub_windows", fmt.Sprintf("%d is out of range", p.SubWindows), fmt.Sprintf("use 1 to %d", MaxSubWindows)}
	}
	return nil
}
