package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testPrepare: equal policies have one id. Prepare refuses what the store does not support.
func (s *suite) testPrepare(t *testing.T) {
	b := s.bench(t)
	for _, p := range s.offered(headgate.Limit{Count: 5, Per: time.Second}) {
		first, again := b.prepare(p), b.prepare(p)
		p.Limit.Count++
		other := b.prepare(p)
		if first == 0 || first != again || first == other {
			t.Errorf("%s: named %d, then %d, and another limit %d", p.Algorithm, first, again, other)
		}
	}
	for a := range s.without {
		if _, err := b.store.Prepare(policy(a, headgate.Limit{Count: 5, Per: time.Second})); err == nil {
			t.Errorf("%s is declared missing, and Prepare takes it", a)
		}
	}
	if _, err := b.store.Prepare(headgate.Policy{Limit: headgate.Limit{Count: -1, Per: time.Second}}); err == nil {
		t.Error("Prepare takes a limit of -1")
	}
}

// testFaults: an Op that cannot be decided gives an error, and an error takes nothing.
func (s *suite) testFaults(t *testing.T) {
	b := s.bench(t)
	p := s.offered(headgate.Limit{Count: 5, Per: time.Second})[0]
	id := b.prepare(p)
	for _, c := range []struct {
		name string
		op   headgate.Op
		want error
	}{
		{"a policy that was never prepared", headgate.Op{Key: "k", Policy: id + 1000, Cost: 1}, headgate.ErrUnknownPolicy},
		{"no policy", headgate.Op{Key: "k", Cost: 1}, headgate.ErrUnknownPolicy},
		{"a negative cost", headgate.Op{Key: "k", Policy: id, Cost: -1}, headgate.ErrBadCost},
		{"a cost beyond counting", headgate.Op{Key: "k", Policy: id, Cost: headgate.MaxUnits + 1}, headgate.ErrBadCost},
	} {
		ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, c.op}
		ops[1].Window = 1
		decisions := make([]headgate.Decision, 2)
		if err := b.store.Apply(t.Context(), ops, decisions); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		b.wantUndecided(c.name, decisions)
		alone := make([]headgate.Decision, 1)
		if err := b.store.Apply(t.Context(), ops[1:], alone); !errors.Is(err, c.want) {
			t.Errorf("%s, alone: %v, want %v", c.name, err, c.want)
		}
		b.wantUndecided(c.name, alone)
	}
	b.wantRemaining("after four faulty groups", "k", id, 5)
}

// wantUndecided: the decisions beside an error let nothing pass.
func (b *bench) wantUndecided(what string, decisions []headgate.Decision) {
	b.t.Helper()
	for i := range decisions {
		if d := &decisions[i]; *d != headgate.Undecided() {
			b.t.Errorf("%s: beside the error decision %d is %+v, want %+v", what, i, *d, headgate.Undecided())
		}
	}
}

// testExpiry: units expire with their window, by the store's clock alone.
func (s *suite) testExpiry(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: 10 * time.Second}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		b.take("k", id, 4)
		b.wantReason("a fifth unit", b.take("k", id, 1), excess(p))
		b.clock.Advance(13 * time.Second) // A sliding window needs one more sub-window.
		b.wantRemaining("13 s later", "k", id, 4)
		b.wantReason("then", b.take("k", id, 4), headgate.WithinLimit)
		b.clock.Advance(24 * time.Hour)
		b.wantRemaining("a day later", "k", id, 4)
	})
}

func excess(p headgate.Policy) headgate.Reason {
	if p.Algorithm == headgate.LeakyBucket {
		return headgate.QueueFull
	}
	return headgate.OverLimit
}

// testClockBack: a clock that steps back admits no unit twice, and blocks no key for long.
func (s *suite) testClockBack(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 5 * time.Second, 12 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			s.each(t, headgate.Limit{Count: 4, Per: 10 * time.Second}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
				b.take("k", id, 4)
				b.clock.Advance(-step)
				b.wantReason("after the step", b.take("k", id, 1), excess(p))
				// Every key is usable after one window, the step, and a sub-window.
				b.clock.Advance(min(step, 10*time.Second) + 13*time.Second)
				b.wantRemaining("two windows later", "k", id, 4)
			})
		})
	}
}

// testLimitChanged: used units stay used under a changed Count, at once. A changed period
// counts separately.
func (s *suite) testLimitChanged(t *testing.T) {
	s.each(t, headgate.Limit{Count: 10, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		b.take("k", id, 6)
		raised, lowered, longer := p, p, p
		raised.Limit.Count, lowered.Limit.Count, longer.Limit.Per = 20, 8, 2*time.Minute
		b.wantRemaining("raised to 20", "k", b.prepare(raised), 14)
		b.wantRemaining("as it was", "k", id, 4)
		b.wantRemaining("lowered to 8", "k", b.prepare(lowered), 2)
		b.wantReason("a third unit of two", b.take("k", b.prepare(lowered), 3), excess(p))
		b.take("k", b.prepare(raised), 1)
		b.wantRemaining("one more taken under the raised one", "k", b.prepare(raised), 13)
		b.wantRemaining("over twice the time", "k", b.prepare(longer), 10)
		b.take("k", b.prepare(longer), 9)
		b.wantRemaining("nine taken over twice the time", "k", b.prepare(longer), 1)
		b.wantRemaining("beside them", "k", b.prepare(raised), 13)
	})
}

// testCostEdges: cost 0 takes nothing. A cost above the limit never passes.
func (s *suite) testCostEdges(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, _ headgate.Policy, id headgate.PolicyID) {
		b.wantReason("cost 0", b.take("k", id, 0), headgate.WithinLimit)
		d := b.take("k", id, 5)
		b.wantReason("cost 5 of 4", d, headgate.Never)
		if d.RetryAfter != 0 || !d.Receipt.Empty() {
			b.t.Errorf("cost 5 of 4: retry %v, receipt %+v, want none", d.RetryAfter, d.Receipt)
		}
		b.wantReason("the greatest cost", b.take("k", id, headgate.MaxUnits), headgate.Never)
		b.wantRemaining("after these", "k", id, 4)
		d = b.apply(headgate.Op{Key: "k", Policy: id, Cost: 4, Kind: headgate.Peek})[0]
		b.wantReason("a Peek at 4", d, headgate.WithinLimit)
		b.wantRemaining("after the Peek", "k", id, 4)
	})
	s.each(t, headgate.Limit{Count: 0, Per: time.Minute}, func(b *bench, _ headgate.Policy, id headgate.PolicyID) {
		b.wantReason("one unit of a limit of 0", b.take("k", id, 1), headgate.Never)
	})
}

// testGroups: the Ops of one group pass or fail together. Different groups are independent.
func (s *suite) testGroups(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		b.take("full", id, 4)
		ds := b.apply(headgate.Op{Key: "free", Policy: id, Cost: 1}, headgate.Op{Key: "full", Policy: id, Cost: 1},
			headgate.Op{Key: "late", Policy: id, Cost: 1})
		b.wantReason("the Op without capacity", ds[1], excess(p))
		for _, i := range []int{0, 2} {
			if ds[i].Verdict != headgate.Allow || !ds[i].Receipt.Empty() || ds[i].Remaining != 4 {
				b.t.Errorf("op %d passes, and nothing is taken: got %v, receipt %+v, remaining %d",
					i, ds[i].Verdict, ds[i].Receipt, ds[i].Remaining)
			}
		}
		b.wantRemaining("a refused group", "free", id, 4)
		b.apply(headgate.Op{Key: "free", Policy: id, Cost: 1}, headgate.Op{Key: "full", Policy: id, Cost: 1, Group: 1})
		b.wantRemaining("a group of its own", "free", id, 3)
		ds = b.apply(headgate.Op{Key: "free", Policy: id, Cost: 1}, headgate.Op{Key: "late", Policy: id, Cost: 1})
		if ds[0].At != ds[1].At {
			b.t.Errorf("one group was decided at %v and %v", ds[0].At, ds[1].At)
		}
		b.wantRemaining("an allowed group", "late", id, 3)
		b.wantRemaining("another window of the key", "late", id, 3)
		if d := b.apply(headgate.Op{Key: "late", Window: 1, Policy: id, Kind: headgate.Peek})[0]; d.Remaining != 4 {
			b.t.Errorf("window 1 of the key has %d left of its own, want 4", d.Remaining)
		}
	})
}

// testNever: a cost above one limit of a group counts nothing in the others, also not an attempt.
func (s *suite) testNever(t *testing.T) {
	s.each(t, headgate.Limit{Count: 9, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		small := p
		small.Limit.Count = 3
		if p.CountRejected = p.Algorithm >= headgate.FixedWindow; p.CountRejected {
			id = b.prepare(p)
		}
		for i := range 8 { // A cluster has some of these keys in other slots.
			key := fmt.Sprint("wide", i)
			ds := b.apply(headgate.Op{Key: key, Policy: id, Cost: 4}, headgate.Op{Key: "small", Policy: b.prepare(small), Cost: 4})
			b.wantReason("4 units of 3", ds[1], headgate.Never)
			if ds[0].Verdict == headgate.Deny || ds[0].Remaining != 9 || !ds[0].Receipt.Empty() {
				b.t.Errorf("beside it: %+v, want 9 remaining and no receipt", ds[0])
			}
			b.wantRemaining("afterwards", key, id, 9)
		}
	})
}

// testReceipts: taken units can be returned, once.
func (s *suite) testReceipts(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		for range 20 { // Twenty rounds use the whole limit each: no unit is lost.
			d := b.take("k", id, 4)
			if d.Receipt.Empty() {
				b.t.Fatal("a take that passed has no receipt")
			}
			b.wantRemaining("taken", "k", id, 0)
			b.giveBack(d.Receipt)
			b.wantRemaining("returned", "k", id, 4)
		}
		first, second := b.take("k", id, 1), b.take("k", id, 1)
		b.giveBack(second.Receipt, second.Receipt)
		b.giveBack(second.Receipt)
		b.wantRemaining("one returned three times", "k", id, 3)
		b.giveBack(headgate.Receipt{})
		b.take("k", id, 3)
		b.clock.Advance(time.Hour)
		b.giveBack(first.Receipt)
		b.wantRemaining("an hour late", "k", id, 4)
		b.take("k", id, 4)
		b.giveBack(second.Receipt, first.Receipt)
		b.wantReason("old receipts", b.take("k", id, 1), excess(p))
	})
}
