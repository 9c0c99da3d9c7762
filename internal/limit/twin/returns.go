package twin

import (
	"math/big"

	"github.com/headgate/headgate"
)

// taking is a take of a bucket that passed.
type taking struct {
	cost int64
	// from is the time at which the bucket was full again before the take, and at least the
	// time of the take.
	from *big.Rat
	// returned is the number of units that had been returned before the take.
	returned int64
	void     bool
}

// spanOf returns the time of n tokens at the rate of the policy.
func (b *bucket) spanOf(n int64) *big.Rat { return new(big.Rat).Mul(rat(n), b.interval()) }

// note remembers a take that passed.
func (b *bucket) note(now headgate.Instant, cost int64) {
	from := rat(int64(now))
	if b.fullAt.Cmp(from) > 0 {
		from.Set(b.fullAt)
	}
	b.takings = append(b.takings, &taking{cost: cost, from: from, returned: b.returned})
}

// ReturnPart gives back a take, except its first kept units. It comes back as far as its units
// have not refilled, after the units returned since have moved it forward. A departure comes back if it is the last one. The twin needs
// one policy for all takes.
func (b *bucket) ReturnPart(n int, kept int64, now headgate.Instant) {
	t := b.takings[n]
	if t.void || kept < 0 || kept >= t.cost {
		return
	}
	t.void = true
	end := new(big.Rat).Add(t.from, b.spanOf(t.cost))
	empty := new(big.Rat).Add(rat(int64(now)), b.spanOf(b.most()))
	if b.policy.Algorithm == headgate.LeakyBucket || b.policy.MaxWait > 0 && b.fullAt.Cmp(empty) > 0 {
		if b.fullAt.Cmp(end) == 0 {
			b.fullAt = t.from.Add(t.from, b.spanOf(kept))
		}
		return
	}
	owed := end.Sub(end, b.spanOf(b.returned-t.returned))
	owed.Sub(owed, rat(int64(now)))
	if most := b.spanOf(t.cost - kept); owed.Cmp(most) > 0 {
		owed = most
	}
	if owed.Sign() <= 0 {
		return
	}
	b.fullAt = new(big.Rat).Sub(b.fullAt, owed)
	b.returned += ceil(owed.Quo(owed, b.interval()))
}

// ReturnLast gives back a take like ReturnPart if it is the last one and has not refilled, and
// reports whether it did.
func (b *bucket) ReturnLast(n int, kept int64, now headgate.Instant) bool {
	t := b.takings[n]
	end := new(big.Rat).Add(t.from, b.spanOf(t.cost))
	if t.void || kept < 0 || kept >= t.cost || b.fullAt.Cmp(end) != 0 || end.Cmp(rat(int64(now))) <= 0 {
		return false
	}
	t.void = true
	b.fullAt = t.from.Add(t.from, b.spanOf(kept))
	return true
}

// ReturnPart gives back a take, except its first kept units. A log that has dropped units of its
// window gives nothing back.
func (w *window) ReturnPart(n int, kept int64, now headgate.Instant) {
	e := &w.entries[w.passed[n]]
	if e.void || kept < 0 || kept >= e.units {
		return
	}
	e.void = true
	if w.dropped == 0 || now-w.dropped >= headgate.Instant(w.policy.Limit.Per) {
		e.units = kept
	}
}

// ReturnPart does nothing: attempts cannot be returned.
func (b *ban) ReturnPart(int, int64, headgate.Instant) {}
