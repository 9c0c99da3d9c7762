package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
)

// testDebts: a Charge counts units that are used already, and later requests pay them.
func (s *suite) testDebts(t *testing.T) {
	s.each(t, headgate.Limit{Count: 10, Per: time.Minute}, func(b *bench, p headgate.Policy, _ headgate.PolicyID) {
		p.Overdraft = 100
		id := b.prepare(p)
		b.charge("all of the limit and of the overdraft", id, 200, 110, 0)
		b.charge("a charge of a key that owes all it may", id, 5, 0, 0)
		d := b.take("k", id, 1)
		if d.Verdict != headgate.Deny || d.RetryAfter < 9*time.Minute || d.RetryAfter > 12*time.Minute {
			b.t.Errorf("a request of a key that owes 100: %+v", d)
		}
		b.clock.Advance(d.RetryAfter - time.Microsecond)
		b.wantReason("a request 1 µs before the RetryAfter", b.take("k", id, 1), excess(p))
		b.clock.Advance(time.Microsecond)
		if d := b.take("k", id, 1); d.Verdict == headgate.Deny {
			b.t.Errorf("a request at the RetryAfter: %+v", d)
		}
		b.charge("a charge that is owed again", id, 100, 100, 0)
		if err := b.store.Forget(b.t.Context(), []headgate.Op{{Key: "k"}}); err != nil {
			b.t.Fatal(err)
		}
		b.wantRemaining("a forgotten debt", "k", id, 10)
		b.charge("a charge within the limit", id, 4, 4, 6)
		b.clock.Advance(30 * time.Minute)
		b.wantRemaining("after half an hour", "k", id, 10)
		b.chargesBeside(p, id)
	})
	t.Run("traces", s.testDebtTraces)
	t.Run("mean", s.testDebtMean)
	t.Run("faults", s.testDebtFaults)
}

// charge counts units and checks the Decision.
func (b *bench) charge(what string, id headgate.PolicyID, cost, counted, remaining int64) {
	b.t.Helper()
	d := b.apply(headgate.Op{Key: "k", Policy: id, Cost: cost, Kind: headgate.Charge})[0]
	if d.Verdict != headgate.Allow || d.Reason != headgate.WithinLimit || d.RetryAfter != 0 || !d.Receipt.Empty() ||
		d.Receipt.Cost != counted || d.Remaining != remaining || d.At == 0 || counted > 0 && d.ResetAfter <= 0 {
		b.t.Errorf("%s: %+v, want %d counted and %d remaining", what, d, counted, remaining)
	}
}

// chargesBeside: a version without an overdraft charges up to the limit. Receipts stay valid under a
// debt, and do not free more than they took.
func (b *bench) chargesBeside(p headgate.Policy, id headgate.PolicyID) {
	b.t.Helper()
	if p.Algorithm == headgate.LeakyBucket {
		return // Departures come back only in the order of their bookings.
	}
	first, second := b.take("k", id, 6).Receipt, b.take("k", id, 4).Receipt
	b.charge("a charge beyond the limit", id, 5, 5, 0)
	first.Kept = 1
	b.giveBack(first)
	b.wantRemaining("after the return of 5 of 15 units", "k", id, 0)
	b.wantReason("a request at the limit", b.take("k", id, 1), headgate.OverLimit)
	b.giveBack(second)
	b.wantRemaining("after the return of all but 6 units", "k", id, 4)
	if err := b.store.Forget(b.t.Context(), []headgate.Op{{Key: "k"}}); err != nil {
		b.t.Fatal(err)
	}
	p.Overdraft = 0
	without := b.prepare(p)
	b.charge("a charge without an overdraft", without, 3, 3, 7)
	b.take("k", without, 3)
	b.charge("a charge without an overdraft beyond the limit", without, 7, 4, 0)
}

// testDebtTraces compares random charges with the twins.
func (s *suite) testDebtTraces(t *testing.T) {
	for _, l := range []headgate.Limit{{Count: 5, Per: time.Second}, {Count: 7, Per: 3 * time.Second}, {Count: 200, Per: time.Minute}} {
		for _, p := range s.offered(l) {
			t.Run(fmt.Sprintf("%s of %s", p.Algorithm, l), func(t *testing.T) {
				for seed, overdraft := range []int64{l.Count, 7 * l.Count, headgate.MaxUnits} {
					p.Overdraft = overdraft
					s.playDebts(t, p, uint64(seed))
				}
			})
		}
	}
}

func (s *suite) playDebts(t *testing.T, p headgate.Policy, seed uint64) {
	t.Helper()
	b, r, w := s.bench(t), rand.New(rand.NewPCG(seed, 9)), twin.New(p)
	id := b.prepare(p)
	for step := range 100 {
		b.clock.Advance(microseconds(r))
		if r.IntN(10) == 0 {
			b.clock.Advance((time.Duration(r.Int64N(20*int64(p.Limit.Per))) + p.Limit.Per).Truncate(time.Microsecond))
		}
		op := headgate.Op{Key: "k", Policy: id, Cost: 1 + r.Int64N(p.Limit.Count)}
		switch r.IntN(5) {
		case 0:
			op.Kind, op.Cost = headgate.Charge, r.Int64N(12*p.Limit.Count)
		case 1:
			op.Kind = headgate.Peek
		}
		where := fmt.Sprintf("seed %d, step %d, op %+v", seed, step, op)
		got, want := b.apply(op)[0], w.Do(b.clock.Now(), op.Cost, op.Kind)
		compare(t, where, p, got, want)
		if op.Kind == headgate.Charge && got.Receipt.Cost != want.Charged {
			t.Fatalf("%s counts %d, the twin %d", where, got.Receipt.Cost, want.Charged)
		}
		if got.Verdict == headgate.Deny && r.IntN(2) == 0 {
			op.Kind = headgate.Peek
			b.clock.Advance(got.RetryAfter - time.Microsecond)
			if d := b.apply(op)[0]; d.Verdict != headgate.Deny && got.RetryAfter > time.Microsecond {
				t.Fatalf("%s passes 1 µs before the RetryAfter %s: %+v", where, got.RetryAfter, d)
			}
			b.clock.Advance(time.Microsecond)
			if d := b.apply(op)[0]; d.Verdict == headgate.Deny {
				t.Fatalf("%s is refused after the RetryAfter %s: %+v", where, got.RetryAfter, d)
			}
		}
	}
}

// testDebtMean: over 20 windows, a client whose answers cost ten times the limit uses the limit,
// within one answer.
func (s *suite) testDebtMean(t *testing.T) {
	s.each(t, headgate.Limit{Count: 10, Per: time.Second}, func(b *bench, p headgate.Policy, _ headgate.PolicyID) {
		p.Overdraft = headgate.MaxUnits
		id, used := b.prepare(p), int64(0)
		for end := b.clock.Now().Add(20 * p.Limit.Per); b.clock.Now() < end; {
			d := b.apply(headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.TakeNow})[0]
			if d.Verdict == headgate.Deny {
				b.clock.Advance(min(d.RetryAfter, 700*time.Millisecond))
				continue
			}
			b.apply(headgate.Op{Key: "k", Policy: id, Cost: 99, Kind: headgate.Charge})
			used += 100
		}
		if used < 100 || used > 300 {
			b.t.Errorf("%d units in 20 windows of 10, want 200 within one answer", used)
		}
	})
}

// testDebtFaults: a Charge is a group of its own, a ban has no debts, and refused attempts are none.
func (s *suite) testDebtFaults(t *testing.T) {
	b := s.bench(t)
	id := b.prepare(policy(headgate.FixedWindow, headgate.Limit{Count: 10, Per: time.Minute}))
	ops := []headgate.Op{{Key: "a", Policy: id, Cost: 1}, {Key: "b", Policy: id, Cost: 1, Kind: headgate.Charge}}
	if err := b.store.Apply(t.Context(), ops, make([]headgate.Decision, 2)); !errors.Is(err, headgate.ErrBadGroup) {
		t.Errorf("a Charge with a Take: %v, want %v", err, headgate.ErrBadGroup)
	}
	if !s.without[headgate.Ban] {
		ban := b.prepare(policy(headgate.Ban, headgate.Limit{Count: 10, Per: time.Minute}))
		ops := []headgate.Op{{Key: "a", Policy: ban, Cost: 1, Kind: headgate.Charge}}
		if err := b.store.Apply(t.Context(), ops, make([]headgate.Decision, 1)); !errors.Is(err, headgate.ErrNotChargeable) {
			t.Errorf("a Charge of a ban: %v, want %v", err, headgate.ErrNotChargeable)
		}
	}
	for _, p := range []headgate.Policy{
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}, Overdraft: -1},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}, Overdraft: headgate.MaxUnits + 1},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}, Overdraft: 1, CountRejected: true},
	} {
		if _, err := b.store.Prepare(p); err == nil {
			t.Errorf("Prepare(%+v) accepts the policy", p)
		}
	}
}
