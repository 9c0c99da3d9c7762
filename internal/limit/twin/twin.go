// Package twin has a slow, simple model of each algorithm: it keeps lists of all counted
// units and calculates in exact fractions.
//
// Tests compare package limit and every store with these twins. Do not use a twin as a
// limiter: its memory grows with every request.
package twin

import (
	"math/big"
	"time"

	"github.com/headgate/headgate"
)

// Answer is the decision of a twin. Only buckets and bans set Retry and Reset. For windows,
// tests try the request again at the time that a Decision names.
type Answer struct {
	Verdict   headgate.Verdict
	Reason    headgate.Reason
	Remaining int64
	Retry     time.Duration
	Reset     time.Duration
	// Charged is the number of units that a Charge has counted.
	Charged int64
}

// Key is one key under one policy.
type Key interface {
	// Do decides cost at now, and counts it according to the policy and the mode. Refund is not
	// for a leaky bucket or a ban. Later, Return must not be called for earlier takes.
	Do(now headgate.Instant, cost int64, mode headgate.OpKind) Answer
	// Count counts an attempt that this key would have admitted, but another key refused.
	Count(now headgate.Instant, cost int64)
	// Return gives back the n-th take that passed, counted from 0, for windows only. For a
	// bucket, the returned units are bounded but not determined.
	Return(n int)
	// ReturnPart gives back the n-th take that passed at the time now, except its first kept
	// units, once. A Refund that gives units back voids all earlier takes. The policy must not
	// have changed.
	ReturnPart(n int, kept int64, now headgate.Instant)
	// Change sets another policy with the same algorithm and period. Counted units stay
	// counted, and the change itself counts and drops nothing.
	Change(p headgate.Policy, now headgate.Instant)
}

// New returns the twin of a new key.
func New(p headgate.Policy) Key {
	switch p.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return &bucket{policy: p, record: p, fullAt: new(big.Rat)}
	case headgate.Ban:
		return &ban{policy: p}
	default:
		return &window{policy: p}
	}
}

// bucket is a token bucket that refills evenly. fullAt is the time at which it is full, at
// the rate of the policy of record, which is the policy of the last take.
type bucket struct {
	policy, record headgate.Policy
	fullAt         *big.Rat
	takings        []*taking
	returned       int64
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// most returns the number of tokens in a full bucket.
func (b *bucket) most() int64 {
	if b.policy.Limit.Burst > 0 {
		return b.policy.Limit.Burst
	}
	return b.policy.Limit.Count
}

func (b *bucket) room() *big.Rat { return rat(b.most()) }

// interval returns the time in which one token refills, in nanoseconds.
func (b *bucket) interval() *big.Rat {
	return big.NewRat(int64(b.policy.Limit.Per), b.policy.Limit.Count)
}

// tokens returns the tokens in the bucket at now, which can be negative. The number of
// missing tokens is the same for every policy. It refills at the rate of the policy of
// record, and is at most that policy's Burst plus the tokens of MaxWait.
func (b *bucket) tokens(now headgate.Instant) *big.Rat {
	record := bucket{policy: b.record}
	missing := new(big.Rat).Sub(b.fullAt, rat(int64(now)))
	missing.Quo(missing, record.interval())
	most := new(big.Rat).Quo(rat(int64(b.record.MaxWait)), record.interval())
	if owe := rat(b.record.Overdraft); owe.Cmp(most) > 0 {
		most = owe
	}
	most.Add(most, record.room())
	switch {
	case missing.Sign() < 0:
		missing = new(big.Rat)
	case missing.Cmp(most) > 0:
		missing = most
	}
	return missing.Sub(b.room(), missing)
}

// timeFor returns the time in which n tokens refill, rounded up.
func (b *bucket) timeFor(n *big.Rat) time.Duration {
	return time.Duration(ceil(new(big.Rat).Mul(n, b.interval())))
}

func ceil(r *big.Rat) int64 {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

func floor(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

func (b *bucket) Do(now headgate.Instant, cost int64, mode headgate.OpKind) Answer {
	if mode == headgate.Refund {
		return b.refund(now, cost)
	}
	if mode == headgate.Charge {
		return b.charge(now, cost)
	}
	tokens := b.tokens(now)
	after := new(big.Rat).Sub(tokens, rat(cost))
	a := Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit}
	missing := time.Duration(0) // the time until the missing tokens of this request have refilled
	if after.Sign() < 0 {
		missing = b.timeFor(new(big.Rat).Neg(after))
	}
	if b.policy.Algorithm == headgate.LeakyBucket {
		a = b.queue(tokens, missing, mode)
	} else if missing > 0 {
		a = b.refuse(missing, mode)
	}
	if cost > b.most() {
		a = Answer{Verdict: headgate.Deny, Reason: headgate.Never}
	}
	if a.Verdict == headgate.Deny {
		after = tokens
	}
	if mode != headgate.Peek && a.Verdict != headgate.Deny {
		b.note(now, cost)
		if cost > 0 {
			b.set(after, now)
		}
	}
	a.Remaining = max(0, floor(after))
	a.Reset = b.timeFor(new(big.Rat).Sub(b.room(), after))
	return a
}

// refuse decides a request that the bucket has too few tokens for. It admits a booking
// within MaxWait.
func (b *bucket) refuse(missing time.Duration, mode headgate.OpKind) Answer {
	switch {
	case mode != headgate.Book:
		return Answer{Verdict: headgate.Deny, Reason: headgate.OverLimit, Retry: missing}
	case missing > b.policy.MaxWait:
		return Answer{Verdict: headgate.Deny, Reason: headgate.WaitTooLong, Retry: missing - b.policy.MaxWait}
	default:
		return Answer{Verdict: headgate.Wait, Reason: headgate.Scheduled, Retry: missing}
	}
}

// queue decides a request that departs after all earlier requests.
func (b *bucket) queue(tokens *big.Rat, missing time.Duration, mode headgate.OpKind) Answer {
	wait := b.timeFor(new(big.Rat).Sub(b.room(), tokens))
	switch {
	case missing > 0 && mode == headgate.Book:
		return Answer{Verdict: headgate.Deny, Reason: headgate.QueueFull, Retry: max(missing, wait-b.policy.MaxWait)}
	case missing > 0 && mode == headgate.TakeNow:
		return Answer{Verdict: headgate.Deny, Reason: headgate.QueueFull, Retry: max(missing, wait)}
	case missing > 0:
		return Answer{Verdict: headgate.Deny, Reason: headgate.QueueFull, Retry: missing}
	case mode == headgate.TakeNow && wait > 0:
		return Answer{Verdict: headgate.Deny, Reason: headgate.OverLimit, Retry: wait}
	case mode == headgate.Book && wait > b.policy.MaxWait:
		return Answer{Verdict: headgate.Deny, Reason: headgate.WaitTooLong, Retry: wait - b.policy.MaxWait}
	case wait > 0:
		return Answer{Verdict: headgate.Wait, Reason: headgate.Scheduled, Retry: wait}
	default:
		return Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit}
	}
}

func (b *bucket) set(tokens *big.Rat, now headgate.Instant) {
	b.record = b.policy
	missing := new(big.Rat).Sub(b.room(), tokens)
	b.fullAt = missing.Mul(missing, b.interval())
	b.fullAt.Add(b.fullAt, rat(int64(now)))
}

// Return does nothing: the units returned to a bucket are not determined.
func (b *bucket) Return(int) {}

// Change sets the policy of the next decisions. The policy of record stays.
func (b *bucket) Change(p headgate.Policy, _ headgate.Instant) { b.policy = p }

// window is a twin that remembers all counted units.
type window struct {
	policy  headgate.Policy
	entries []entry
	passed  []int // The entries of the takes that passed.
	// debt are the units that a log owes. The other windows owe the units of entries.
	debt int64
	last headgate.Instant // The time of the last decision under an overdraft.
	// dropped is the time of the newest unit that a log has dropped, because refused attempts
	// exceeded its Count.
	dropped headgate.Instant
}

type entry struct {
	at    headgate.Instant
	units int64
	spot  int64 // The sub-window of at, for a sliding window.
	void  bool  // The entry was returned, or units were refunded since.
}

// used returns the units that count at now, as a fraction: units that count in full, and
// the weighted units of the oldest sub-window.
func (w *window) used(now headgate.Instant) *big.Rat {
	per, spot := headgate.Instant(w.policy.Limit.Per), w.subWindow(now)
	full, leaving := int64(0), int64(0)
	for _, e := range w.entries {
		switch back := spot - e.spot; {
		case w.policy.Algorithm == headgate.FixedWindow:
			full += e.unitsIf(e.at/per == now/per)
		case w.policy.Algorithm == headgate.SlidingLog:
			full += e.unitsIf(now-e.at < per)
		default:
			full += e.unitsIf(back < int64(w.policy.SubWindows))
			leaving += e.unitsIf(back == int64(w.policy.SubWindows))
		}
	}
	sum := rat(full)
	if leaving > 0 {
		sum.Add(sum, new(big.Rat).Mul(rat(leaving), w.inside(now, spot)))
	}
	return sum
}

// isLog reports whether the window is that of a log.
func (w *window) isLog() bool { return w.policy.Algorithm == headgate.SlidingLog }

// counts reports whether an entry counts at now, in full or in part.
func (w *window) counts(e *entry, now headgate.Instant) bool {
	per := headgate.Instant(w.policy.Limit.Per)
	switch w.policy.Algorithm {
	case headgate.FixedWindow:
		return e.at/per == now/per
	case headgate.SlidingLog:
		return now-e.at < per
	default:
		return w.subWindow(now)-e.spot <= int64(w.policy.SubWindows)
	}
}

func (e entry) unitsIf(yes bool) int64 {
	if yes {
		return e.units
	}
	return 0
}

// inside returns the part of the oldest sub-window that still counts at now, in sub-window
// spot.
func (w *window) inside(now headgate.Instant, spot int64) *big.Rat {
	width := w.width()
	elapsed := new(big.Rat).Sub(rat(int64(now)), new(big.Rat).Mul(rat(spot), width))
	return new(big.Rat).Sub(rat(1), elapsed.Quo(elapsed, width))
}

// width returns the length of a sub-window, in nanoseconds.
func (w *window) width() *big.Rat {
	return big.NewRat(int64(w.policy.Limit.Per), int64(w.policy.SubWindows))
}

// subWindow returns the number of the sub-window that contains t, for a sliding window.
func (w *window) subWindow(t headgate.Instant) int64 {
	if w.policy.Algorithm != headgate.SlidingWindow {
		return 0
	}
	return floor(new(big.Rat).Quo(rat(int64(t)), w.width()))
}

func (w *window) Do(now headgate.Instant, cost int64, mode headgate.OpKind) Answer {
	if w.policy.Overdraft > 0 {
		w.pay(now)
	}
	if mode == headgate.Charge {
		return w.charge(now, cost)
	}
	if mode == headgate.Refund {
		return w.refund(now, cost)
	}
	count := w.policy.Limit.Count
	counted := floor(w.used(now))
	used := min(counted, count)
	a := Answer{Verdict: headgate.Allow, Reason: headgate.WithinLimit}
	switch {
	case cost > count:
		a = Answer{Verdict: headgate.Deny, Reason: headgate.Never}
	case used+cost > count || w.policy.CountAll && counted > count:
		a = Answer{Verdict: headgate.Deny, Reason: headgate.OverLimit}
	default:
		a.Remaining = count - used - cost
	}
	if a.Verdict == headgate.Deny {
		a.Remaining = max(0, count-used)
	}
	counts := a.Verdict == headgate.Allow || w.policy.CountRejected && a.Reason != headgate.Never || w.policy.CountAll
	if mode != headgate.Peek && counts {
		if a.Verdict == headgate.Allow {
			w.passed = append(w.passed, len(w.entries))
		}
		w.Count(now, cost)
	}
	return a
}

// Count counts an attempt. A fixed window counts up to MaxUnits.
func (w *window) Count(now headgate.Instant, cost int64) {
	if w.policy.Algorithm == headgate.FixedWindow {
		cost = min(cost, headgate.MaxUnits-floor(w.used(now)))
	}
	w.entries = append(w.entries, entry{at: now, units: cost, spot: w.subWindow(now)})
	if w.policy.Algorithm == headgate.SlidingLog && cost > 0 {
		w.drop(now)
	}
}

func (w *window) Return(n int) { w.entries[w.passed[n]].units = 0 }

// Change sets the policy, and computes the sub-windows of all entries again. The twin
// remembers more than the state does, so tests avoid changes that show the difference.
func (w *window) Change(p headgate.Policy, _ headgate.Instant) {
	w.policy = p
	for i := range w.entries {
		w.entries[i].spot = w.subWindow(w.entries[i].at)
	}
}

// Count does nothing: a bucket does not count refused attempts.
func (b *bucket) Count(headgate.Instant, int64) {}
