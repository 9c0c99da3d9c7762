package limit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// admission is a take that passed. Its units count from its time on, unless they were
// returned.
type admission struct {
	at       headgate.Instant
	receipt  headgate.Receipt
	returned bool
	kept     int64 // after the return
}

// TestReturnedTokensAreBounded checks that the units that were not returned stay within
// burst + rate x time, over every interval and for any order of takes and returns. It
// compares all pairs of admissions.
func TestReturnedTokensAreBounded(t *testing.T) {
	for _, l := range []headgate.Limit{
		{Count: 10, Per: time.Second}, {Count: 7, Per: time.Second, Burst: 3}, {Count: 3, Per: time.Microsecond, Burst: 9},
	} {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 2))
			s := newSubject(t, headgate.Policy{Limit: l})
			all := takeAndReturn(s, l, r)
			for i := range all {
				checkFrom(t, seed, l, all[i:])
			}
		}
	}
}

func takeAndReturn(s *subject, l headgate.Limit, r *rand.Rand) []admission {
	interval := int64(l.Per) / l.Count
	now := at(0)
	var all []admission
	for range 80 {
		now += headgate.Instant(r.Int64N(interval))
		if r.IntN(3) == 0 && len(all) > 0 {
			if a := &all[r.IntN(len(all))]; !a.returned {
				a.kept = r.Int64N(a.receipt.Cost)
				a.receipt.Kept = a.kept
				s.giveBack(a.receipt, now)
				a.returned = true
			}
			continue
		}
		if d := s.do(now, 1+r.Int64N(3), headgate.Take); d.Verdict == headgate.Allow {
			all = append(all, admission{at: now, receipt: d.Receipt})
		}
	}
	return all
}

// checkFrom checks every interval that starts with the first admission.
func checkFrom(t *testing.T, seed uint64, l headgate.Limit, all []admission) {
	t.Helper()
	sum := int64(0)
	room := Room(headgate.Policy{Limit: l})
	for _, a := range all {
		if a.returned {
			sum += a.kept
		} else {
			sum += a.receipt.Cost
		}
		if most := room + int64(a.at-all[0].at)*l.Count/int64(l.Per); sum > most {
			t.Fatalf("seed %d, %s: %d units admitted in %v, more than %d", seed, l, sum, a.at.Sub(all[0].at), most)
		}
	}
}

// TestReturnedTokensComeBack checks that a busy bucket makes all returned units available.
func TestReturnedTokensComeBack(t *testing.T) {
	s := newSubject(t, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}})
	first := s.do(at(0), 1, headgate.Take)
	second := s.do(at(0), 4, headgate.Take)
	s.do(at(0), 5, headgate.Take)
	s.giveBack(second.Receipt, at(0))
	if d := s.do(at(0), 4, headgate.Take); d.Verdict != headgate.Allow || d.Remaining != 0 {
		t.Errorf("a take of four returned units: %v remaining %d, want allow and 0", d.Verdict, d.Remaining)
	}
	if s.giveBack(first.Receipt, at(time.Second)) {
		t.Error("a unit that had already refilled was returned")
	}
}

// TestDepartures books departures and cancels half of them. No two departures may share a
// slot, and no departure that was not canceled may move or disappear.
func TestDepartures(t *testing.T) {
	perSecond := headgate.Limit{Count: 100, Per: time.Second, Burst: 1000}
	for _, policy := range []headgate.Policy{
		{Algorithm: headgate.LeakyBucket, Limit: perSecond, MaxWait: 10 * time.Second},
		{Limit: headgate.Limit{Count: 100, Per: time.Second, Burst: 1}, MaxWait: 10 * time.Second},
	} {
		t.Run(policy.Algorithm.String(), func(t *testing.T) {
			for seed := range uint64(50) {
				cancelHalf(t, newSubject(t, policy), rand.New(rand.NewPCG(seed, 3)), seed)
			}
		})
	}
}

func cancelHalf(t *testing.T, s *subject, r *rand.Rand, seed uint64) {
	t.Helper()
	const interval = 10 * time.Millisecond
	taken := map[headgate.Instant]bool{}
	var booked []headgate.Decision
	for range 1000 {
		d := s.do(at(0), 1, headgate.Book)
		slot := d.At.Add(d.RetryAfter)
		if taken[slot] || slot%headgate.Instant(interval) != 0 {
			t.Fatalf("seed %d: departure %v is already in use, or is not on a slot", seed, slot)
		}
		taken[slot] = true
		booked = append(booked, d)
		if r.IntN(2) == 0 {
			cancelled := r.IntN(len(booked))
			c := booked[cancelled]
			if s.giveBack(c.Receipt, at(0)) {
				delete(taken, c.At.Add(c.RetryAfter))
			}
			booked = append(booked[:cancelled], booked[cancelled+1:]...)
		}
	}
	for _, d := range booked {
		if !taken[d.At.Add(d.RetryAfter)] {
			t.Fatalf("seed %d: a departure that was not canceled disappeared", seed)
		}
	}
}

// TestCancelledTailFreesItsSlot checks that returning the last departure frees its slot, and
// that returning an earlier departure does not.
func TestCancelledTailFreesItsSlot(t *testing.T) {
	s := newSubject(t, headgate.Policy{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 1, Per: time.Second, Burst: 5}})
	first, second, third := s.do(at(0), 1, 0), s.do(at(0), 1, 0), s.do(at(0), 1, 0)
	if s.giveBack(second.Receipt, at(0)) || s.giveBack(first.Receipt, at(0)) {
		t.Error("a departure with later departures was freed")
	}
	if !s.giveBack(third.Receipt, at(0)) {
		t.Error("the last departure was not freed")
	}
	if again := s.do(at(0), 1, 0); again.RetryAfter != third.RetryAfter {
		t.Errorf("the request departs after %v, want the freed slot at %v", again.RetryAfter, third.RetryAfter)
	}
}

// TestOldLimitsReceipts checks that receipts stay valid until another policy takes, and
// return nothing afterwards.
func TestOldLimitsReceipts(t *testing.T) {
	slow := headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second, Burst: 10}}
	quick := headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Second, Burst: 20}}
	s := newSubject(t, slow)
	first, second := s.do(at(0), 4, headgate.Take), s.do(at(0), 6, headgate.Take)
	s.change(quick)
	s.do(at(0), 20, headgate.Take)
	s.do(at(0), 0, headgate.Take)
	s.change(slow)
	if !s.giveBack(second.Receipt, at(0)) {
		t.Error("a receipt became invalid after a refusal and a take of 0 units by another policy")
	}
	s.change(quick)
	s.do(at(0), 1, headgate.Take)
	s.change(slow)
	s.do(at(0), 1, headgate.Take)
	if s.giveBack(first.Receipt, at(0)) {
		t.Error("a receipt returned units after a change of the policy of record")
	}
}

// TestReceiptsOfManyChanges checks that no number of changes makes an old receipt valid again.
func TestReceiptsOfManyChanges(t *testing.T) {
	slow := headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Minute, Burst: 1 << 18}}
	quick := headgate.Policy{Limit: headgate.Limit{Count: 2, Per: time.Minute, Burst: 1 << 18}}
	s := newSubject(t, slow)
	first := s.do(at(0), 1000, headgate.Take)
	for i := range 1<<17 + 2 {
		s.change([]headgate.Policy{quick, slow}[i%2])
		s.do(at(0), 1, headgate.Take)
		if i%2 == 1 && s.giveBack(first.Receipt, at(0)) {
			t.Fatalf("a receipt returned units after %d changes", i+1)
		}
	}
}

// TestReturnsCountWhatComesBack checks that only units that come back lower later returns: a
// return of refilled units and of half-refilled ones. A shift by the units of a later take
// is more than necessary, and safe.
func TestReturnsCountWhatComesBack(t *testing.T) {
	second := headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}}
	const ms = time.Millisecond
	for _, row := range []struct {
		name  string
		takes [][2]int // The millisecond and the cost of each take.
		order []int    // The takes that are returned, in this order, at 1600 ms.
		free  int64
	}{
		{"a late one, then an early one", [][2]int{{0, 10}, {1500, 9}}, []int{0, 1}, 10},
		{"the last one, then the one before", [][2]int{{1500, 2}, {1500, 3}, {1500, 4}}, []int{2, 1, 0}, 6},
		{"the one before, then the last one", [][2]int{{1500, 2}, {1500, 4}}, []int{0, 1}, 10},
		{"half-refilled units, then the last ones", [][2]int{{1350, 4}, {1400, 3}, {1500, 3}}, []int{0, 2}, 7},
	} {
		s := newSubject(t, second)
		var receipts []headgate.Receipt
		for _, take := range row.takes {
			receipts = append(receipts, s.do(at(time.Duration(take[0])*ms), int64(take[1]), headgate.Take).Receipt)
		}
		for _, i := range row.order {
			s.giveBack(receipts[i], at(1600*ms))
		}
		if d := s.do(at(1600*ms), 0, headgate.Peek); d.Remaining != row.free {
			t.Errorf("%s: %d are free, want %d", row.name, d.Remaining, row.free)
		}
	}
}

// TestReturnedUnitsCarry checks that a receipt stays valid when the count of returned units
// exceeds 32 bits, and that an emptied cell accepts no receipt.
func TestReturnedUnitsCarry(t *testing.T) {
	s := newSubject(t, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Second}})
	s.cell.Returned = math.MaxUint32 - 5
	first, second := s.do(at(0), 100, headgate.Take), s.do(at(0), 20, headgate.Take)
	s.do(at(0), 1, headgate.Take)
	if !s.giveBack(second.Receipt, at(0)) || !s.giveBack(first.Receipt, at(0)) {
		t.Error("a receipt from before 2^32 returned units gave nothing back")
	}
	if d := s.do(at(0), 0, headgate.Peek); d.Remaining != 979 {
		t.Errorf("%d are free, want 1000 without the one of the last take and the 20 of the shift", d.Remaining)
	}
	third := s.do(at(0), 100, headgate.Take)
	s.cell.Void()
	s.do(at(0), 100, headgate.Take)
	if s.giveBack(third.Receipt, at(0)) {
		t.Error("an emptied cell has accepted a receipt from before")
	}
}
