package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestLedgerOfASlowKey: the units of a bucket may begin days ahead. When the ledger forgets
// such a receipt, it still accepts the receipts of other keys.
func TestLedgerOfASlowKey(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 1 << 20})
	slow := s.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 24 * time.Hour, Burst: 100}})
	fast := s.prepare(headgate.Policy{Limit: ten(time.Second)})
	s.take("slow", slow, 99)
	s.giveBack(s.take("slow", slow, 1))
	for range ledgerSize {
		s.now = s.now.Add(time.Second)
		s.giveBack(s.take("fast", fast, 1))
	}
	s.giveBack(s.take("other", fast, 10))
	if d := s.take("other", fast, 10); d.Verdict != headgate.Allow {
		t.Errorf("ten units were taken and returned, and then: %v %v", d.Verdict, d.Reason)
	}
}

// TestReceiptsOfEvictedStates: the receipt of an evicted state returns nothing.
func TestReceiptsOfEvictedStates(t *testing.T) {
	for _, p := range []headgate.Policy{
		{Limit: ten(1000 * time.Hour)},
		{Algorithm: headgate.FixedWindow, Limit: ten(1000 * time.Hour)},
		{Algorithm: headgate.SlidingLog, Limit: ten(1000 * time.Hour)},
		{Algorithm: headgate.SlidingWindow, SubWindows: 2, Limit: ten(1000 * time.Hour)},
	} {
		t.Run(p.Algorithm.String(), func(t *testing.T) {
			s := newSteady(t, Config{MaxMemory: 64 << 10})
			id := s.prepare(p)
			first := s.take("k", id, 9)
			s.now = s.now.Add(500 * time.Hour) // The state of the flood becomes void later.
			at := s.table.spotOf(s.hash("k"), 0)
			kept := func() *place { return s.find(at, id, &s.policy(id).Plan) }
			for i := 0; kept() != nil && uint64(kept().cell.Epoch) == first.Receipt.Place[1]; i++ {
				if i == 200_000 {
					t.Fatal("the key was not evicted")
				}
				s.take(fmt.Sprint(i), id, 9)
			}
			s.now = s.now.Add(time.Second)
			passed := s.drain("k", id)
			s.giveBack(first)
			if passed += s.drain("k", id); passed > 10 {
				t.Errorf("%d passed after the eviction, and none was returned", passed)
			}
		})
	}
}

// TestReceiptsAcrossLimits: a limit changes, and changes back. A receipt from before returns
// nothing. A receipt of a limit with another period returns nothing either.
func TestReceiptsAcrossLimits(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 1 << 20})
	slow := s.prepare(headgate.Policy{Limit: ten(10 * time.Second)})
	quick := s.prepare(headgate.Policy{Limit: headgate.Limit{Count: 10_000, Per: 10 * time.Second, Burst: 20}})
	first := s.take("k", slow, 10)
	s.take("k", quick, 1)
	s.now = s.now.Add(100 * time.Millisecond)
	passed := s.drain("k", slow)
	s.giveBack(first)
	if passed += s.drain("k", slow); passed > 10 {
		t.Errorf("there and back: %d passed at one instant", passed)
	}

	second := s.prepare(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: ten(time.Second)})
	minute := s.prepare(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: ten(time.Minute)})
	early := s.take("w", second, 10)
	s.now = s.now.Add(time.Second)
	s.take("w", second, 10)
	s.take("w", minute, 10)
	s.giveBack(early)
	if d := s.take("w", minute, 1); d.Verdict == headgate.Allow {
		t.Error("a unit of an earlier second was returned to the minute")
	}
}

// TestReturnsBeyondCounting: Return gets more units than the state can count.
func TestReturnsBeyondCounting(t *testing.T) {
	const g = int64(1) << 32
	s := newSteady(t, Config{MaxMemory: 1 << 20})
	id := s.prepare(headgate.Policy{Limit: headgate.Limit{Count: g, Per: time.Second, Burst: 10 * g}})
	first, second := s.take("k", id, 5*g), s.take("k", id, 5*g)
	s.giveBack(first)
	s.now = s.now.Add(5 * time.Second)
	s.take("k", id, 10*g)
	s.giveBack(second)
	if d := s.take("k", id, g); d.Verdict == headgate.Allow {
		t.Error("units that had refilled were returned")
	}
}

// TestReceiptsFromBeforeAStepBack: the clock steps back, and the bucket moves with it. A
// receipt from before the step returns nothing.
func TestReceiptsFromBeforeAStepBack(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 1 << 20})
	id := s.prepare(headgate.Policy{Limit: ten(10 * time.Second)})
	first := s.take("k", id, 10)
	s.now = s.now.Add(-500 * time.Second)
	s.take("k", id, 1)
	s.now = s.now.Add(10 * time.Second)
	passed := s.drain("k", id)
	s.giveBack(first)
	if passed += s.drain("k", id); passed > 10 {
		t.Errorf("%d passed at one instant", passed)
	}
}

// TestReceiptsAtTheEpoch: the clock begins at 0.
func TestReceiptsAtTheEpoch(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 1 << 20})
	s.now = 0
	id := s.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Hour}})
	s.giveBack(s.take("k", id, 1))
	if d := s.take("k", id, 1); d.Verdict != headgate.Allow {
		t.Error("the unit was not returned")
	}
}
