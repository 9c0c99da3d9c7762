package twin

import (
	"math/big"
	"slices"

	"github.com/headgate/headgate"
)

// charge takes up to cost tokens, until the bucket owes the overdraft.
func (b *bucket) charge(now headgate.Instant, cost int64) Answer {
	tokens := b.tokens(now)
	units := max(0, min(cost, floor(new(big.Rat).Add(tokens, rat(b.policy.Overdraft)))))
	after := new(big.Rat).Sub(tokens, rat(units))
	if units > 0 {
		b.set(after, now)
	}
	return Answer{
		Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: max(0, floor(after)), Charged: units,
		Reset: b.timeFor(new(big.Rat).Sub(b.room(), after)),
	}
}

// charge counts up to cost units, until the window owes the overdraft.
func (w *window) charge(now headgate.Instant, cost int64) Answer {
	count, used := w.policy.Limit.Count, floor(w.used(now))
	units := max(0, min(cost, count+w.policy.Overdraft-used-w.debt))
	counted := units
	if w.isLog() {
		counted = min(units, count-used)
		w.debt += units - counted
	}
	w.entries = append(w.entries, entry{at: now, units: counted, spot: w.subWindow(now)})
	return Answer{
		Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: max(0, count-used-units), Charged: units,
	}
}

// pay counts the units of a debt that fit from the last decision to now.
func (w *window) pay(now headgate.Instant) {
	switch {
	case w.last == 0:
	case w.isLog():
		w.payLog(now)
	default:
		w.payWindows(now)
	}
	w.last = now
}

// payLog visits each time at which units leave the window.
func (w *window) payLog(now headgate.Instant) {
	at := w.last
	for w.debt > 0 {
		if units := min(w.debt, w.policy.Limit.Count-floor(w.used(at))); units > 0 {
			w.entries = append(w.entries, entry{at: at, units: units})
			w.debt -= units
		}
		next := headgate.Instant(0)
		for _, e := range w.entries {
			if leaves := e.at + headgate.Instant(w.policy.Limit.Per); e.units > 0 && leaves > at && (next == 0 || leaves < next) {
				next = leaves
			}
		}
		if next == 0 || next > now {
			return
		}
		at = next
		w.entries = slices.DeleteFunc(w.entries, func(e entry) bool { return !w.counts(&e, at) })
	}
}

// payWindows visits each sub-window. A window without sub-windows is one.
func (w *window) payWindows(now headgate.Instant) {
	n, to := int64(max(w.policy.SubWindows, 1)), w.spotOf(now)
	for k := w.spotOf(w.last); k < to; k++ {
		over := -w.policy.Limit.Count
		for i := range w.entries {
			if s := w.spotOfEntry(&w.entries[i]); s <= k && s > k-n {
				over += w.entries[i].units
			}
		}
		if over <= 0 {
			break
		}
		moved := int64(0)
		for i := range w.entries {
			if e := &w.entries[i]; w.spotOfEntry(e) == k {
				units := min(e.units, over-moved)
				e.units -= units
				moved += units
			}
		}
		at := w.startOf(k + 1)
		w.entries = append(w.entries, entry{at: at, units: moved, spot: w.subWindow(at)})
		w.entries = slices.DeleteFunc(w.entries, func(e entry) bool { return e.units == 0 || w.spotOfEntry(&e) < k-n })
	}
}

// spotOf returns the sub-window of t, or its window.
func (w *window) spotOf(t headgate.Instant) int64 {
	return w.spotOfEntry(&entry{at: t, spot: w.subWindow(t)})
}

func (w *window) spotOfEntry(e *entry) int64 {
	if w.policy.Algorithm == headgate.FixedWindow {
		return int64(e.at) / int64(w.policy.Limit.Per)
	}
	return e.spot
}

// startOf returns the first nanosecond of a sub-window, or of a window.
func (w *window) startOf(k int64) headgate.Instant {
	if w.policy.Algorithm == headgate.FixedWindow {
		return headgate.Instant(k * int64(w.policy.Limit.Per))
	}
	return headgate.Instant(ceil(new(big.Rat).Mul(rat(k), w.width())))
}
