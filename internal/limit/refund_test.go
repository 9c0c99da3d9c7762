package limit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// refundable gives a policy of each algorithm that refunds units.
func refundable(l headgate.Limit) []headgate.Policy {
	return []headgate.Policy{
		{Limit: l},
		{Algorithm: headgate.FixedWindow, Limit: l},
		{Algorithm: headgate.SlidingLog, Limit: l},
		{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 3},
	}
}

// holder is a caller that took units. Its units count until it returns or refunds them.
type holder struct {
	receipt headgate.Receipt
	units   int64
}

// TestRefundsAndReceipts: callers return their receipts, refund a part of their units, or
// refund and then also return the receipt. The units of other callers always count.
func TestRefundsAndReceipts(t *testing.T) {
	for _, policy := range refundable(headgate.Limit{Count: 20, Per: time.Hour}) {
		t.Run(policy.Algorithm.String(), func(t *testing.T) {
			for seed := range uint64(100) {
				holdUnits(t, newSubject(t, policy), rand.New(rand.NewPCG(seed, 5)), seed)
			}
		})
	}
}

func holdUnits(t *testing.T, s *subject, r *rand.Rand, seed uint64) {
	t.Helper()
	var holders []*holder
	now := at(0)
	for step := range 200 {
		if s.plan.Policy.Algorithm != headgate.TokenBucket { // Units of a bucket would refill.
			now += headgate.Instant(r.IntN(2))
		}
		switch {
		case len(holders) == 0 || r.IntN(3) == 0:
			if d := s.do(now, 1+r.Int64N(4), headgate.Take); d.Verdict == headgate.Allow {
				holders = append(holders, &holder{d.Receipt, d.Receipt.Cost})
			}
		case r.IntN(2) == 0:
			if h := holders[r.IntN(len(holders))]; s.giveBack(h.receipt, now) {
				*h = holder{receipt: headgate.Receipt{From: -1}}
			}
		default:
			h := holders[r.IntN(len(holders))]
			units := r.Int64N(h.units + 1)
			s.do(now, units, headgate.Refund)
			h.units -= units
		}
		held := int64(0)
		for _, h := range holders {
			held += h.units
		}
		if d := s.do(now, 0, headgate.Peek); d.Remaining > 20-held {
			t.Fatalf("seed %d, step %d: %d of 20 units remain, and callers hold %d", seed, step, d.Remaining, held)
		}
	}
}

// TestRefundStories: what a Refund gives back, and what it leaves.
func TestRefundStories(t *testing.T) {
	for _, policy := range refundable(headgate.Limit{Count: 10, Per: time.Minute}) {
		t.Run(policy.Algorithm.String(), func(t *testing.T) {
			s := newSubject(t, policy)
			want := func(what string, d headgate.Decision, remaining int64) {
				t.Helper()
				if d.Verdict != headgate.Allow || d.Reason != headgate.WithinLimit || d.RetryAfter != 0 || d.Remaining != remaining ||
					!d.Receipt.Empty() || d.Limit != 10 {
					t.Errorf("%s: %+v, want %d remaining", what, d, remaining)
				}
			}
			want("a refund of a new key", s.do(at(0), 5, headgate.Refund), 10)
			first := s.do(at(0), 4, headgate.Take)
			s.do(at(0), 4, headgate.Take)
			want("a refund of nothing", s.do(at(0), 0, headgate.Refund), 2)
			if !s.giveBack(first.Receipt, at(0)) {
				t.Error("a refund of nothing made a receipt invalid")
			}
			second := s.do(at(0), 1, headgate.Take)
			want("a refund of 3 of 5", s.do(at(0), 3, headgate.Refund), 8)
			if s.giveBack(second.Receipt, at(0)) {
				t.Error("a receipt returned units after a refund")
			}
			want("a refund of more than counted", s.do(at(0), headgate.MaxUnits, headgate.Refund), 10)
			if d := s.do(at(0), 10, headgate.Take); d.Verdict != headgate.Allow {
				t.Errorf("10 units after the refund: %+v", d)
			}
			want("a refund of an expired window", s.do(at(10*time.Minute), 10, headgate.Refund), 10)
			if d := s.do(at(10*time.Minute), 11, headgate.Peek); d.Reason != headgate.Never {
				t.Errorf("11 units at once: %+v", d)
			}
		})
	}
}

// TestRefundsKeepDepartures: while departures are booked, a Refund gives nothing back.
func TestRefundsKeepDepartures(t *testing.T) {
	s := newSubject(t, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}, MaxWait: time.Minute})
	s.do(at(0), 1, headgate.Take)
	booked := s.do(at(0), 1, headgate.Book)
	s.do(at(0), 1, headgate.Refund)
	if d := s.do(at(0), 1, headgate.Book); d.RetryAfter != booked.RetryAfter+time.Second {
		t.Errorf("the next departure is after %v, want %v", d.RetryAfter, booked.RetryAfter+time.Second)
	}
}

// TestRefundsOfVersions: a version of a bucket refunds in the terms of the version that took.
func TestRefundsOfVersions(t *testing.T) {
	slow := headgate.Policy{Limit: headgate.Limit{Count: 3, Per: time.Second, Burst: 10}}
	quick := headgate.Policy{Limit: headgate.Limit{Count: 7, Per: time.Second, Burst: 20}}
	s := newSubject(t, slow)
	s.do(at(0), 10, headgate.Take)
	s.change(quick)
	if d := s.do(at(0), 4, headgate.Refund); d.Remaining != 14 {
		t.Errorf("4 of 10 units came back, and %d of 20 remain", d.Remaining)
	}
	s.change(slow)
	if d := s.do(at(0), 0, headgate.Peek); d.Remaining != 4 || d.ResetAfter != 2*time.Second {
		t.Errorf("%d of 10 remain, reset after %v, want 4 after 2s", d.Remaining, d.ResetAfter)
	}
}

// TestReceiptsOfManyRefunds: no number of refunds makes an old receipt valid again.
func TestReceiptsOfManyRefunds(t *testing.T) {
	for _, policy := range refundable(headgate.Limit{Count: 1 << 18, Per: time.Hour})[:2] {
		s := newSubject(t, policy)
		first := s.do(at(0), 1000, headgate.Take)
		for i := range 1<<17 + 2 {
			s.do(at(0), 1, headgate.Take)
			s.do(at(0), 1, headgate.Refund)
			if s.giveBack(first.Receipt, at(0)) {
				t.Fatalf("%s: a receipt returned units after %d refunds", policy.Algorithm, i+1)
			}
		}
	}
}

// TestCountAll tells the counts of a window that counts first.
func TestCountAll(t *testing.T) {
	all := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}, CountRejected: true, CountAll: true}
	none := all
	none.Limit.Count = 0
	for _, c := range []struct {
		name          string
		policy        headgate.Policy
		costs         []int64 // before the last attempt
		cost          int64
		verdict       headgate.Verdict
		reason        headgate.Reason
		remaining     int64
		retry, resets bool
	}{
		{"at the limit", all, []int64{9}, 1, headgate.Allow, headgate.WithinLimit, 0, false, true},
		{"above the limit", all, []int64{9}, 2, headgate.Deny, headgate.OverLimit, 1, true, true},
		{"above the limit at once", all, nil, 11, headgate.Deny, headgate.Never, 10, false, true},
		{"nothing at the limit", all, []int64{10}, 0, headgate.Allow, headgate.WithinLimit, 0, false, true},
		{"nothing above the limit", all, []int64{10, 1}, 0, headgate.Deny, headgate.OverLimit, 0, true, true},
		{"nothing after too much at once", all, []int64{11}, 0, headgate.Deny, headgate.OverLimit, 0, true, true},
		{"one after too much at once", all, []int64{11}, 1, headgate.Deny, headgate.OverLimit, 0, true, true},
		{"nothing of a new key", all, nil, 0, headgate.Allow, headgate.WithinLimit, 10, false, false},
		{"nothing of a limit of 0", none, nil, 0, headgate.Allow, headgate.WithinLimit, 0, false, false},
		{"one of a limit of 0", none, nil, 1, headgate.Deny, headgate.Never, 0, false, true},
		{"nothing above a limit of 0", none, []int64{1}, 0, headgate.Deny, headgate.OverLimit, 0, true, true},
		{"the greatest counts", all, []int64{headgate.MaxUnits, headgate.MaxUnits}, headgate.MaxUnits, headgate.Deny, headgate.Never, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject(t, c.policy)
			now := at(20 * time.Second)
			for _, cost := range c.costs {
				s.do(now, cost, headgate.Take)
			}
			end := time.Minute - time.Duration(now%headgate.Instant(time.Minute))
			want := headgate.Decision{Verdict: c.verdict, Reason: c.reason, Limit: c.policy.Limit.Count, Remaining: c.remaining, At: now}
			if c.retry {
				want.RetryAfter = end
			}
			if c.resets {
				want.ResetAfter = end
			}
			for _, mode := range []headgate.OpKind{headgate.Peek, headgate.Take} {
				got := s.do(now, c.cost, mode)
				got.Receipt = headgate.Receipt{}
				if got != want {
					t.Errorf("kind %d:\n got %+v\nwant %+v", mode, got, want)
				}
			}
			if s.cell.Units > headgate.MaxUnits {
				t.Errorf("%d units are counted, more than MaxUnits", s.cell.Units)
			}
		})
	}
}

// TestCountAllBelongsToFixedWindow: the error of another policy says what to do.
func TestCountAllBelongsToFixedWindow(t *testing.T) {
	for _, p := range []headgate.Policy{
		{Algorithm: headgate.FixedWindow, CountAll: true},
		{Algorithm: headgate.SlidingLog, CountRejected: true, CountAll: true},
		{Algorithm: headgate.TokenBucket, CountAll: true},
		{Algorithm: headgate.Ban, BanFor: time.Second, CountAll: true},
	} {
		p.Limit = headgate.Limit{Count: 5, Per: time.Second}
		var fault *PolicyError
		if _, err := Compile(p); !errors.As(err, &fault) || fault.Field != "count_all" || fault.Fix == "" {
			t.Errorf("%s: %v, want an error of count_all", p.Algorithm, err)
		}
	}
}

// TestKinds: the kinds that each algorithm supports, and the groups that they can share.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		algorithm headgate.Algorithm
		kind      headgate.OpKind
		want      error
	}{
		{headgate.FixedWindow, headgate.Take, nil},
		{headgate.FixedWindow, headgate.Refund, nil},
		{headgate.TokenBucket, headgate.Refund, nil},
		{headgate.TokenBucket, headgate.Book, nil},
		{headgate.FixedWindow, headgate.Book, headgate.ErrNotBookable},
		{headgate.LeakyBucket, headgate.Refund, headgate.ErrNotRefundable},
		{headgate.Ban, headgate.Refund, headgate.ErrNotRefundable},
		{headgate.Ban, headgate.TakeIfAll, nil},
		{headgate.FixedWindow, headgate.TakeNow, nil},
		{headgate.FixedWindow, headgate.Charge, nil},
		{headgate.LeakyBucket, headgate.Charge, nil},
		{headgate.Ban, headgate.Charge, headgate.ErrNotChargeable},
		{headgate.FixedWindow, headgate.Charge + 1, headgate.ErrUnknownKind},
	} {
		if err := CheckKind(c.algorithm, c.kind); !errors.Is(err, c.want) {
			t.Errorf("kind %d of %s: %v, want %v", c.kind, c.algorithm, err, c.want)
		}
	}
	for _, c := range []struct {
		kinds []headgate.OpKind
		want  error
	}{
		{[]headgate.OpKind{headgate.Refund}, nil},
		{[]headgate.OpKind{headgate.Take, headgate.Peek, headgate.Book}, nil},
		{[]headgate.OpKind{headgate.TakeIfAll, headgate.TakeIfAll}, nil},
		{[]headgate.OpKind{headgate.Refund, headgate.Refund}, headgate.ErrBadGroup},
		{[]headgate.OpKind{headgate.Take, headgate.Refund}, headgate.ErrBadGroup},
		{[]headgate.OpKind{headgate.Refund, headgate.Take}, headgate.ErrBadGroup},
		{[]headgate.OpKind{headgate.TakeIfAll, headgate.Peek}, headgate.ErrBadGroup},
		{[]headgate.OpKind{headgate.Take, headgate.TakeIfAll}, headgate.ErrBadGroup},
	} {
		ops := make([]headgate.Op, len(c.kinds))
		for i, kind := range c.kinds {
			ops[i].Kind = kind
		}
		if err := CheckGroup(ops); !errors.Is(err, c.want) {
			t.Errorf("a group of %s: %v, want %v", fmt.Sprint(c.kinds), err, c.want)
		}
	}
}
