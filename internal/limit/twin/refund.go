package twin

import (
	"math/big"

	"github.com/headgate/headgate"
)

// refund gives tokens back, up to a full bucket. The policy of record stays. While departures
// are booked ahead, it does nothing.
func (b *bucket) refund(now headgate.Instant, cost int64) Answer {
	record := bucket{policy: b.record, record: b.record, fullAt: b.fullAt}
	missing := new(big.Rat).Sub(record.room(), record.tokens(now))
	booked := b.policy.MaxWait > 0 && b.tokens(now).Sign() < 0
	if cost > 0 && missing.Sign() > 0 && !booked {
		missing.Sub(missing, rat(cost))
		if missing.Sign() < 0 {
			missing = new(big.Rat)
		}
		b.fullAt = missing.Mul(missing, record.interval())
		b.fullAt.Add(b.fullAt, rat(int64(now)))
		for _, t := range b.takings {
			t.void = true
		}
	}
	tokens := b.tokens(now)
	return Answer{
		Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: max(0, floor(tokens)),
		Reset: b.timeFor(new(big.Rat).Sub(b.room(), tokens)),
	}
}

// refund removes the newest units that still count. It does nothing while a log has dropped
// units of the window.
func (w *window) refund(now headgate.Instant, cost int64) Answer {
	given := false
	if w.dropped == 0 || now-w.dropped >= headgate.Instant(w.policy.Limit.Per) {
		for i := len(w.entries) - 1; i >= 0 && cost > 0; i-- {
			if e := &w.entries[i]; w.counts(e, now) {
				units := min(e.units, cost)
				e.units -= units
				cost -= units
				given = given || units > 0
			}
		}
	}
	for i := range w.entries {
		w.entries[i].void = w.entries[i].void || given
	}
	used := min(floor(w.used(now)), w.policy.Limit.Count)
	return Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Remaining: w.policy.Limit.Count - used}
}

// drop finds the newest unit that a log drops: the newest Count units stay.
func (w *window) drop(now headgate.Instant) {
	kept := int64(0)
	for i := len(w.entries) - 1; i >= 0; i-- {
		e := &w.entries[i]
		if kept += e.units; kept > w.policy.Limit.Count && w.counts(e, now) {
			w.dropped = max(w.dropped, e.at)
			return
		}
	}
}
