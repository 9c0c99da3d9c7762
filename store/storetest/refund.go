package storetest

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// refund gives units back and checks the Decision.
func (b *bench) refund(what, key string, id headgate.PolicyID, cost, remaining int64) {
	b.t.Helper()
	d := b.apply(headgate.Op{Key: key, Policy: id, Cost: cost, Kind: headgate.Refund})[0]
	if d.Verdict != headgate.Allow || d.Reason != headgate.WithinLimit || d.RetryAfter != 0 || !d.Receipt.Empty() ||
		d.Remaining != remaining || d.At == 0 || d.ResetAfter < 0 || remaining == d.Limit && d.ResetAfter != 0 {
		b.t.Errorf("%s: %+v, want %d remaining", what, d, remaining)
	}
	b.wantRemaining(what+", then", key, id, remaining)
}

// testRefund: units come back to a key's present state. Any request may have taken them.
func (s *suite) testRefund(t *testing.T) {
	s.each(t, headgate.Limit{Count: 10, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		if !limit.Accepts(p.Algorithm, headgate.Refund) {
			b.refusesRefund(id)
			return
		}
		b.refund("a refund of a new key", "k", id, 5, 10)
		first := b.take("k", id, 4)
		b.take("k", id, 4)
		b.refund("a refund of nothing", "k", id, 0, 2)
		b.giveBack(first.Receipt)
		b.wantRemaining("a receipt after a refund of nothing", "k", id, 6)
		second := b.take("k", id, 1)
		b.refund("a refund of 3 of 5", "k", id, 3, 8)
		b.giveBack(second.Receipt)
		b.wantRemaining("a receipt after a refund", "k", id, 8)
		third := b.take("k", id, 1)
		b.giveBack(third.Receipt)
		b.wantRemaining("a receipt of a take after the refund", "k", id, 8)
		b.refund("a refund of more than counted", "k", id, headgate.MaxUnits, 10)
		b.wantReason("all of the limit", b.take("k", id, 10), headgate.WithinLimit)
		b.refund("a refund of all but one", "k", id, 9, 9)
		b.clock.Advance(10 * time.Minute)
		b.refund("a refund of an expired window", "k", id, 9, 10)
		b.take("k", id, 10)
		b.wantReason("more than the limit", b.take("k", id, 1), excess(p))
		b.refundsVersions(p, id)
	})
	t.Run("faults", s.testRefundFaults)
	t.Run("number", func(t *testing.T) { refundSays(s.bench(t)) })
	t.Run("reset", func(t *testing.T) { resetsLoweredLimit(s.bench(t)) })
	t.Run("booked departures", func(t *testing.T) {
		if !s.without[headgate.TokenBucket] {
			refundBooked(s.bench(t))
		}
	})
}

// refundSays: a fixed window says how many units came back, also above a lower limit.
func refundSays(b *bench) {
	const many = 1 << 31 // Above it, Memcached has another counter.
	p := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: many, Per: time.Minute}}
	all := b.prepare(p)
	p.Limit.Count = 3
	few := b.prepare(p)
	for _, c := range []struct {
		what             string
		by               headgate.PolicyID
		take, cost, want int64
	}{
		{"a refund of a new key", few, 0, 5, 0},
		{"3 of 10", all, 10, 3, 3},
		{"6 of 7, by a lower limit", few, 0, 6, 6},
		{"5 of 1", few, 0, 5, 1},
		{"5 of none", all, 0, 5, 0},
		{"all of many", few, many, headgate.MaxUnits, many},
		{"none of 2", all, 2, 0, 0},
	} {
		b.take("k", all, c.take)
		d := b.apply(headgate.Op{Key: "k", Policy: c.by, Cost: c.cost, Kind: headgate.Refund})[0]
		if d.Receipt != (headgate.Receipt{Cost: c.want}) {
			b.t.Errorf("%s: the receipt is %+v, want the cost %d alone", c.what, d.Receipt, c.want)
		}
	}
	b.clock.Advance(time.Hour)
	if d := b.apply(headgate.Op{Key: "k", Policy: all, Cost: 5, Kind: headgate.Refund})[0]; d.Receipt.Cost != 0 {
		b.t.Errorf("a refund of an expired window says %d units", d.Receipt.Cost)
	}
}

// refusesRefund: an algorithm without refunds gives an error, and nothing is applied.
func (b *bench) refusesRefund(id headgate.PolicyID) {
	b.t.Helper()
	b.take("k", id, 4)
	ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "k", Policy: id, Cost: 1, Kind: headgate.Refund, Group: 1}}
	decisions := make([]headgate.Decision, 2)
	if err := b.store.Apply(b.t.Context(), ops, decisions); !errors.Is(err, headgate.ErrNotRefundable) {
		b.t.Errorf("a refund: %v, want ErrNotRefundable", err)
	}
	b.wantUndecided("a refund", decisions)
	b.wantRemaining("after the error", "k", id, 6)
}

// refundsVersions: each version of a limit refunds the units of the other.
func (b *bench) refundsVersions(p headgate.Policy, id headgate.PolicyID) {
	b.t.Helper()
	raised, none := p, p
	raised.Limit.Count, none.Limit.Count = 20, 0
	more, zero := b.prepare(raised), b.prepare(none)
	b.take("v", id, 6)
	b.refund("3 of 6 units under the raised limit", "v", more, 3, 17)
	b.wantRemaining("as it was", "v", id, 7)
	b.take("v", more, 5)
	b.refund("4 of 8 units under the first limit", "v", id, 4, 6)
	b.wantRemaining("raised", "v", more, 16)
	d := b.apply(headgate.Op{Key: "new", Policy: zero, Cost: 1, Kind: headgate.Refund})[0]
	if d.Verdict != headgate.Allow || d.Remaining != 0 {
		b.t.Errorf("a refund under a limit of 0: %+v", d)
	}
}

// testRefundFaults: a Refund with another Op in its group, and other invalid groups and kinds,
// apply nothing.
func (s *suite) testRefundFaults(t *testing.T) {
	b := s.bench(t)
	p := s.offered(headgate.Limit{Count: 5, Per: time.Minute})[0]
	id := b.prepare(p)
	kinds := func(kinds ...headgate.OpKind) (ops []headgate.Op) {
		for i, k := range kinds {
			ops = append(ops, headgate.Op{Key: "k", Window: uint8(i), Policy: id, Cost: 1, Kind: k})
		}
		return ops
	}
	for _, c := range []struct {
		name string
		ops  []headgate.Op
		want error
	}{
		{"two refunds in one group", kinds(headgate.Refund, headgate.Refund), headgate.ErrBadGroup},
		{"a refund after a take", kinds(headgate.Take, headgate.Refund), headgate.ErrBadGroup},
		{"a refund before a take", kinds(headgate.Refund, headgate.Take), headgate.ErrBadGroup},
		{"TakeIfAll with Take", kinds(headgate.TakeIfAll, headgate.Take), headgate.ErrBadGroup},
		{"TakeIfAll with Peek", kinds(headgate.Peek, headgate.TakeIfAll), headgate.ErrBadGroup},
		{"an unknown kind", kinds(headgate.Charge + 1), headgate.ErrUnknownKind},
		{"a negative refund", []headgate.Op{{Key: "k", Policy: id, Cost: -1, Kind: headgate.Refund}}, headgate.ErrBadCost},
		{"a refund of no policy", []headgate.Op{{Key: "k", Cost: 1, Kind: headgate.Refund}}, headgate.ErrUnknownPolicy},
	} {
		ops := append([]headgate.Op{{Key: "k", Policy: id, Cost: 1, Group: 7}}, c.ops...)
		for _, ops := range [][]headgate.Op{ops[1:], ops} {
			decisions := make([]headgate.Decision, len(ops))
			if err := b.store.Apply(t.Context(), ops, decisions); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			b.wantUndecided(c.name, decisions)
		}
	}
	for _, name := range []string{"twice the same key"} {
		ops := kinds(headgate.TakeIfAll, headgate.TakeIfAll)
		ops[1].Window = 0
		decisions := make([]headgate.Decision, 2)
		if err := b.store.Apply(t.Context(), ops, decisions); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	b.wantRemaining("after faulty groups", "k", id, 5)
}

// refundBooked: while departures are booked ahead, a refund gives nothing back.
func refundBooked(b *bench) {
	id := b.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}, MaxWait: time.Minute})
	book := headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.Book}
	b.apply(book)
	first := b.apply(book)[0]
	b.refund("a refund of a booked departure", "k", id, 1, 0)
	if next := b.apply(book)[0]; next.RetryAfter != first.RetryAfter+time.Second {
		b.t.Errorf("the next departure is after %v, want %v", next.RetryAfter, first.RetryAfter+time.Second)
	}
}

// testRefundClockBack: a refund after a step back of the clock.
func (s *suite) testRefundClockBack(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 5 * time.Second, 12 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			s.each(t, headgate.Limit{Count: 4, Per: 10 * time.Second}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
				if !limit.Accepts(p.Algorithm, headgate.Refund) {
					return
				}
				before := b.take("k", id, 4)
				b.clock.Advance(-step)
				b.refund("after the step", "k", id, 2, 2)
				b.giveBack(before.Receipt)
				b.wantRemaining("a receipt from before the step", "k", id, 2)
				b.wantReason("the refunded units", b.take("k", id, 2), headgate.WithinLimit)
				b.wantReason("one more", b.take("k", id, 1), excess(p))
			})
		})
	}
}

// holder is a caller that took units. The units count until it returns or refunds them.
type holder struct {
	receipt headgate.Receipt
	units   int64
}

// testRefundHolders: callers return their receipts, refund a part of their units, or refund
// and then also return the receipt. The units of other callers always count.
func (s *suite) testRefundHolders(t *testing.T) {
	s.each(t, headgate.Limit{Count: 20, Per: time.Hour}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		if !limit.Accepts(p.Algorithm, headgate.Refund) {
			return
		}
		r := rand.New(rand.NewPCG(uint64(p.Algorithm), 13))
		var holders []*holder
		for step := range 300 {
			switch {
			case len(holders) == 0 || r.IntN(3) == 0:
				if d := b.take("k", id, 1+r.Int64N(4)); d.Verdict == headgate.Allow {
					holders = append(holders, &holder{d.Receipt, d.Receipt.Cost})
				}
			case r.IntN(3) == 0:
				i := r.IntN(len(holders))
				b.giveBack(holders[i].receipt) // It returns nothing after a refund.
				holders[i].units = 0
				holders[i].receipt = headgate.Receipt{}
			default:
				h := holders[r.IntN(len(holders))]
				units := r.Int64N(h.units + 1)
				b.apply(headgate.Op{Key: "k", Policy: id, Cost: units, Kind: headgate.Refund})
				h.units -= units
			}
			held := int64(0)
			for _, h := range holders {
				held += h.units
			}
			if left := b.remaining("k", id); left > 20-held {
				b.t.Fatalf("step %d: %d of 20 units remain, and callers hold %d", step, left, held)
			}
			if step%50 == 49 {
				b.apply(headgate.Op{Key: "k", Policy: id, Cost: headgate.MaxUnits, Kind: headgate.Refund})
				holders = nil
			}
		}
	})
}

// resetsLoweredLimit: a version with a high limit reads and gives back units that are above a lowered limit.
func resetsLoweredLimit(b *bench) {
	const (
		hour = time.Hour
		most = 1 << 31 // Memcached counts limits above it in another place.
	)
	fixed := func(count int64) headgate.PolicyID {
		return b.prepare(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: hour}})
	}
	former, lowered, unlimited := fixed(10), fixed(5), fixed(most)
	b.take("k", former, 8)
	b.wantRemaining("a lowered limit", "k", lowered, 0)
	b.wantRemaining("a version with a high limit", "k", unlimited, most-8)
	b.take("k", former, 1) // Meanwhile, as another request.
	b.refund("of what was read", "k", unlimited, 8, most-1)
	b.wantRemaining("the lowered limit", "k", lowered, 4)
}
