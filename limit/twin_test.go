package limit

import (
	"math/big"
	"time"

	"github.com/headgate/headgate"
)

// The twins are what the algorithms mean, written without a thought for speed:
// lists of everything that was ever counted, and fractions of any length.

// answer is what a twin says of a request.
type answer struct {
	verdict   headgate.Verdict
	reason    headgate.Reason
	remaining int64
	retry     time.Duration
	reset     time.Duration
}

// twin is a key as its algorithm's definition has it.
type twin interface {
	do(now headgate.Instant, cost int64, mode headgate.Mode) answer
	// undo gives back the take of number n, counted from 0 over all that passed.
	undo(n int, now headgate.Instant)
	change(p headgate.Policy, now headgate.Instant)
}

func newTwin(p headgate.Policy) twin {
	switch p.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return &bucketTwin{policy: p, fullAt: new(big.Rat)}
	default:
		return &windowTwin{policy: p}
	}
}

// bucketTwin is a bucket of tokens that refills evenly: fullAt is when it is full.
type bucketTwin struct {
	policy headgate.Policy
	fullAt *big.Rat
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (b *bucketTwin) room() *big.Rat { return rat(Room(b.policy)) }

// interval is the time in which one token comes, in nanoseconds.
func (b *bucketTwin) interval() *big.Rat {
	return big.NewRat(int64(b.policy.Limit.Per), b.policy.Limit.Count)
}

// tokens are at most the room, and at least what MaxWait lets be booked ahead.
func (b *bucketTwin) tokens(now headgate.Instant) *big.Rat {
	missing := new(big.Rat).Sub(b.fullAt, rat(int64(now)))
	missing.Quo(missing, b.interval())
	tokens := new(big.Rat).Sub(b.room(), missing)
	if tokens.Cmp(b.room()) > 0 {
		tokens = b.room()
	}
	floor := new(big.Rat).Neg(new(big.Rat).Quo(rat(int64(b.policy.MaxWait)), b.interval()))
	if tokens.Cmp(floor) < 0 {
		tokens = floor
	}
	return tokens
}

// timeFor is how long n tokens take, rounded up.
func (b *bucketTwin) timeFor(n *big.Rat) time.Duration {
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

func (b *bucketTwin) do(now headgate.Instant, cost int64, mode headgate.Mode) answer {
	tokens := b.tokens(now)
	after := new(big.Rat).Sub(tokens, rat(cost))
	a := answer{verdict: headgate.Allow, reason: headgate.WithinLimit}
	missing := time.Duration(0) // How long until the tokens for this request are there.
	if after.Sign() < 0 {
		missing = b.timeFor(new(big.Rat).Neg(after))
	}
	if b.policy.Algorithm == headgate.LeakyBucket {
		a = b.queue(tokens, missing, mode)
	} else if missing > 0 {
		a = b.refuse(missing, mode)
	}
	if cost > Room(b.policy) {
		a = answer{verdict: headgate.Deny, reason: headgate.Never}
	}
	if a.verdict == headgate.Deny {
		after = tokens
	}
	if mode != headgate.Peek && a.verdict != headgate.Deny {
		b.set(after, now)
	}
	a.remaining = max(0, floor(after))
	a.reset = b.timeFor(new(big.Rat).Sub(b.room(), after))
	return a
}

// refuse answers a request whose tokens come later.
func (b *bucketTwin) refuse(missing time.Duration, mode headgate.Mode) answer {
	switch {
	case mode != headgate.Book:
		return answer{verdict: headgate.Deny, reason: headgate.OverLimit, retry: missing}
	case missing > b.policy.MaxWait:
		return answer{verdict: headgate.Deny, reason: headgate.WaitTooLong, retry: missing - b.policy.MaxWait}
	default:
		return answer{verdict: headgate.Wait, reason: headgate.Scheduled, retry: missing}
	}
}

// queue answers a request that departs when all before it have.
func (b *bucketTwin) queue(tokens *big.Rat, missing time.Duration, mode headgate.Mode) answer {
	wait := b.timeFor(new(big.Rat).Sub(b.room(), tokens))
	switch {
	case missing > 0:
		return answer{verdict: headgate.Deny, reason: headgate.QueueFull, retry: missing}
	case mode == headgate.Book && wait > b.policy.MaxWait:
		return answer{verdict: headgate.Deny, reason: headgate.WaitTooLong, retry: wait - b.policy.MaxWait}
	case wait > 0:
		return answer{verdict: headgate.Wait, reason: headgate.Scheduled, retry: wait}
	default:
		return answer{verdict: headgate.Allow, reason: headgate.WithinLimit}
	}
}

func (b *bucketTwin) set(tokens *big.Rat, now headgate.Instant) {
	missing := new(big.Rat).Sub(b.room(), tokens)
	b.fullAt = missing.Mul(missing, b.interval())
	b.fullAt.Add(b.fullAt, rat(int64(now)))
}

func (b *bucketTwin) undo(int, headgate.Instant) {
	panic("returns of buckets are judged by their bound")
}

// change keeps what was used: the missing tokens, in the new interval, to the
// fraction of a nanosecond that the new limit counts in, rounded up.
func (b *bucketTwin) change(p headgate.Policy, now headgate.Instant) {
	used := new(big.Rat).Sub(b.room(), b.tokens(now))
	b.policy = p
	per := new(big.Rat).Mul(used, b.interval())
	den := b.interval().Denom()
	scaled := new(big.Rat).Mul(per, new(big.Rat).SetInt(den))
	per = new(big.Rat).Quo(rat(ceil(scaled)), new(big.Rat).SetInt(den))
	b.fullAt = per.Add(per, rat(int64(now)))
	b.set(b.tokens(now), now)
}

// windowTwin remembers all that was ever counted.
type windowTwin struct {
	policy  headgate.Policy
	entries []entry
	passed  []int // The entries of the takes that passed.
}

type entry struct {
	at    headgate.Instant
	units int64
}

// used is the units that count against a request at now, in fractions.
func (w *windowTwin) used(now headgate.Instant) *big.Rat {
	sum := new(big.Rat)
	for _, e := range w.entries {
		sum.Add(sum, new(big.Rat).Mul(rat(e.units), w.weight(e.at, now)))
	}
	return sum
}

// weight is the part of a unit counted at t that still counts at now.
func (w *windowTwin) weight(t, now headgate.Instant) *big.Rat {
	per := headgate.Instant(w.policy.Limit.Per)
	switch w.policy.Algorithm {
	case headgate.FixedWindow:
		return one(t/per == now/per)
	case headgate.SlidingLog:
		return one(now-t < per)
	default:
		k, kNow := w.subWindow(t), w.subWindow(now)
		n := int64(w.policy.SubWindows)
		if kNow-k != n {
			return one(kNow-k < n)
		}
		// The oldest sub-window counts with the part of it that is still inside.
		width := big.NewRat(int64(per), n)
		elapsed := new(big.Rat).Sub(rat(int64(now)), new(big.Rat).Mul(rat(kNow), width))
		return new(big.Rat).Sub(rat(1), elapsed.Quo(elapsed, width))
	}
}

func one(yes bool) *big.Rat {
	if yes {
		return rat(1)
	}
	return new(big.Rat)
}

func (w *windowTwin) subWindow(t headgate.Instant) int64 {
	width := big.NewRat(int64(w.policy.Limit.Per), int64(w.policy.SubWindows))
	return floor(new(big.Rat).Quo(rat(int64(t)), width))
}

func (w *windowTwin) do(now headgate.Instant, cost int64, mode headgate.Mode) answer {
	count := w.policy.Limit.Count
	used := min(floor(w.used(now)), count)
	a := answer{verdict: headgate.Allow, reason: headgate.WithinLimit}
	switch {
	case cost > count:
		a = answer{verdict: headgate.Deny, reason: headgate.Never}
	case used+cost > count:
		a = answer{verdict: headgate.Deny, reason: headgate.OverLimit}
	default:
		a.remaining = count - used - cost
	}
	if a.verdict == headgate.Deny {
		a.remaining = max(0, count-used)
	}
	counted := a.verdict == headgate.Allow || w.policy.CountRejected && a.reason != headgate.Never
	if mode != headgate.Peek && counted {
		if a.verdict == headgate.Allow {
			w.passed = append(w.passed, len(w.entries))
		}
		w.entries = append(w.entries, entry{now, cost})
	}
	return a
}

func (w *windowTwin) undo(n int, _ headgate.Instant) { w.entries[w.passed[n]].units = 0 }

// change of a log or a fixed window is nothing to one who remembers all; the
// tests change only what the state can know.
func (w *windowTwin) change(p headgate.Policy, _ headgate.Instant) { w.policy = p }
