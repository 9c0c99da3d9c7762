package limit

import (
	"math/bits"

	"github.com/headgate/headgate"
)

// Windows is the state of a sliding window: N+1 counters of sub-windows in a
// ring that the store owns, the newest being sub-window Newest since the epoch.
//
// Policies of one Family and one N count in one ring. For another N the store keeps
// another ring, up to MaxRings: SeedWindows begins it, and ChargeWindows counts in it
// what was taken under the others.
type Windows struct {
	// Counters has SubWindows+1 places; sub-window k is counted at k modulo that.
	Counters []int64
	Newest   int64
	Total    int64
	// Moved counts the long steps back of the clock that moved the counters: the store
	// adds it to the state's epoch, since receipts no longer find their sub-windows.
	Moved uint16
}

// MaxRings is how many values of SubWindows one state counts for at once. One more
// takes the place of the one that came first, which begins again from the others if
// it comes back.
const MaxRings = 4

// Rings reports whether w is a ring of the plan's N.
func (p *Plan) Rings(w *Windows) bool { return len(w.Counters) == p.Policy.SubWindows+1 }

// WindowCounters is how many counters the plan needs.
func (p *Plan) WindowCounters() int { return p.Policy.SubWindows + 1 }

// grid is a period cut into n sub-windows.
type grid struct{ n, per uint64 }

// gridOf gives the plan's period cut into the sub-windows of w.
func (p *Plan) gridOf(w *Windows) grid { return grid{uint64(len(w.Counters) - 1), uint64(p.per)} }

// place gives the sub-window that t lies in and how far it has run, in parts of
// Per: t*N = k*Per + elapsed. So N need not divide the period.
func (g grid) place(t headgate.Instant) (k int64, elapsed uint64) {
	hi, lo := bits.Mul64(uint64(t), g.n)
	q, r := bits.Div64(hi, lo, g.per)
	return int64(q), r
}

// startOf gives the first nanosecond of sub-window k.
func (g grid) startOf(k int64) headgate.Instant {
	hi, lo := bits.Mul64(uint64(k), g.per)
	q, r := bits.Div64(hi, lo, g.n)
	if r > 0 {
		q++
	}
	return headgate.Instant(q)
}

func (w *Windows) at(k int64) *int64 { return &w.Counters[k%int64(len(w.Counters))] }

// JudgeWindows decides cost at now into d and takes nothing; sub-windows that
// have passed are cleared. The estimate is the whole sub-windows and the oldest
// one, weighted by what of it is still inside, rounded down.
func (p *Plan) JudgeWindows(w *Windows, now headgate.Instant, cost int64, d *headgate.Decision) {
	g := p.gridOf(w)
	at := g.advance(w, now)
	k, elapsed := g.place(at)
	oldest := *w.at(k + 1) // The place of k-N: the ring has N+1.
	used := w.Total - oldest + weigh(oldest, uint64(p.per)-elapsed, uint64(p.per))
	d.At, d.Limit = at, p.count
	d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
	d.Receipt = headgate.Receipt{Cost: cost, From: at}
	used = min(used, p.count) // Counted refusals may have left more; full is full.
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
	if total > 0 {
		newest := k
		if d.Verdict == headgate.Deny || cost == 0 {
			newest = w.newestUsed()
		}
		d.ResetAfter = g.startOf(newest + int64(len(w.Counters))).Sub(now)
	}
}

// weigh gives the floor of count x part/whole; part is at most whole.
func weigh(count int64, part, whole uint64) int64 {
	hi, lo := bits.Mul64(uint64(count), part)
	q, _ := bits.Div64(hi, lo, whole)
	return int64(q)
}

// advance clears the sub-windows that now has passed and gives the time to
// decide at. After a step back of up to a window the newest sub-window is held;
// after a longer one the counters move to the present.
func (g grid) advance(w *Windows, now headgate.Instant) headgate.Instant {
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

// rotateLeft moves every counter by places towards the front, by three reversals.
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

// passesAt gives the first nanosecond at which the estimate, if nothing more
// arrives, is at most room. It looks at each sub-window once.
func (p *Plan) passesAt(w *Windows, at headgate.Instant, room int64) headgate.Instant {
	g := p.gridOf(w)
	k, elapsed := g.place(at)
	per, n := uint64(p.per), int64(len(w.Counters))
	whole := w.Total
	for j := range n {
		oldest := *w.at(k + j + 1)
		whole -= oldest
		if whole > room {
			continue
		}
		// floor(oldest*(per-e)/per) <= left for every e from the least one on.
		least := uint64(0)
		if left := room - whole; oldest > left {
			least = per - weighUp(uint64(left)+1, per, uint64(oldest)) + 1
		}
		if j == 0 {
			least = max(least, elapsed)
		}
		if least >= per {
			continue // Only the next sub-window frees enough.
		}
		ahead := uint64(j)*per + least - elapsed
		return at + headgate.Instant(divideUp(ahead, g.n))
	}
	return g.startOf(k + n)
}

// weighUp gives the ceiling of count x part/whole, for results within a uint64.
func weighUp(count, part, whole uint64) uint64 {
	hi, lo := bits.Mul64(count, part)
	q, r := bits.Div64(hi, lo, whole)
	if r > 0 {
		q++
	}
	return q
}

func divideUp(a, b uint64) uint64 { return (a + b - 1) / b }

// newestUsed gives the newest sub-window that has counted anything.
func (w *Windows) newestUsed() int64 {
	for k := w.Newest; k > w.Newest-int64(len(w.Counters)); k-- {
		if *w.at(k + int64(len(w.Counters))) > 0 {
			return k
		}
	}
	return w.Newest
}

// TakeWindows counts what JudgeWindows has just decided at now; the RetryAfter of a
// refusal then takes the counted attempt into account.
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

// ChargeWindows counts, in the ring w of another N, what a policy of the plan's Family
// has taken at the time at.
func (p *Plan) ChargeWindows(w *Windows, at headgate.Instant, cost int64) {
	p.gridOf(w).advance(w, at)
	w.count(cost)
}

// SeedWindows begins the ring w of another N from the ring from: each count moves to
// the newest sub-window that its own one reaches, and out of the oldest, which counts
// only in part, so that nothing leaves earlier than it would have. The store seeds
// from the ring of the greatest N that it has.
func (p *Plan) SeedWindows(w, from *Windows, now headgate.Instant) {
	to, old := p.gridOf(w), p.gridOf(from)
	now = old.advance(from, now)
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

// ReturnWindows takes the units of r out of their sub-window of a ring of any N, and
// reports whether it is still counted.
func (p *Plan) ReturnWindows(w *Windows, r *headgate.Receipt) bool {
	k, _ := p.gridOf(w).place(r.From)
	if k > w.Newest || k <= w.Newest-int64(len(w.Counters)) {
		return false
	}
	units := min(*w.at(k), r.Cost)
	*w.at(k) -= units
	w.Total -= units
	return units > 0
}

// WindowsFreeAt gives the instant from which no counter of a ring of any N matters.
func (p *Plan) WindowsFreeAt(w *Windows) headgate.Instant {
	if w.Total == 0 {
		return 0
	}
	return p.gridOf(w).startOf(w.newestUsed() + int64(len(w.Counters)))
}
