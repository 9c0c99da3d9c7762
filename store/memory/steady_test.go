package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// steady is a store with a clock that the test moves, and the steps of the tests below.
type steady struct {
	*Store

	t   *testing.T
	now headgate.Instant
	// beforeReading runs once, at the next reading of the clock: between the reading and the lock.
	beforeReading func()
}

func newSteady(t *testing.T, c Config) *steady {
	t.Helper()
	s := &steady{t: t, now: headgate.Instant(1000 * time.Second)}
	c.Clock = func() headgate.Instant {
		read := s.now
		if run := s.beforeReading; run != nil {
			s.beforeReading = nil
			run()
		}
		return read
	}
	store, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Store = store
	return s
}

func (s *steady) prepare(p headgate.Policy) headgate.PolicyID {
	s.t.Helper()
	id, err := s.Prepare(p)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *steady) do(key string, id headgate.PolicyID, cost int64, mode headgate.OpKind) headgate.Decision {
	s.t.Helper()
	var d headgate.Decision
	if err := s.Take(&headgate.Op{Key: key, Policy: id, Cost: cost, Kind: mode}, &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *steady) take(key string, id headgate.PolicyID, cost int64) headgate.Decision {
	s.t.Helper()
	return s.do(key, id, cost, headgate.Take)
}

// drain takes single units until a take is refused, and counts the takes that pass.
func (s *steady) drain(key string, id headgate.PolicyID) int {
	s.t.Helper()
	n := 0
	for s.take(key, id, 1).Verdict == headgate.Allow {
		n++
	}
	return n
}

func (s *steady) giveBack(d headgate.Decision) {
	s.t.Helper()
	if err := s.Return(s.t.Context(), []headgate.Receipt{d.Receipt}); err != nil {
		s.t.Fatal(err)
	}
}

func ten(per time.Duration) headgate.Limit { return headgate.Limit{Count: 10, Per: per} }

// TestBatchesOfThePast: other callers move the state on after TakeMany has read the clock. No
// algorithm treats this as a clock that stepped back.
func TestBatchesOfThePast(t *testing.T) {
	for _, c := range []struct {
		policy headgate.Policy
		late   time.Duration
	}{
		{headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Second, Burst: 10}}, 10 * time.Millisecond},
		{headgate.Policy{Limit: headgate.Limit{Count: 999, Per: time.Second, Burst: 10}}, 10 * time.Millisecond},
		{headgate.Policy{Algorithm: headgate.FixedWindow, Limit: ten(time.Millisecond)}, 3 * time.Millisecond},
		{headgate.Policy{Algorithm: headgate.SlidingLog, Limit: ten(time.Millisecond)}, 3 * time.Millisecond},
		{headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: 4, Limit: ten(time.Millisecond)}, 3 * time.Millisecond},
		{headgate.Policy{Algorithm: headgate.SlidingLog, Limit: ten(10 * time.Millisecond)}, 9 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s %s", c.policy.Algorithm, c.policy.Limit), func(t *testing.T) {
			s := newSteady(t, Config{MaxMemory: 1 << 20})
			id := s.prepare(c.policy)
			s.take("k", id, 0)
			s.now = s.now.Add(c.late)
			passed := s.drain("k", id)
			for range 5 {
				s.now = s.now.Add(-c.late)
				s.beforeReading = func() {
					s.now = s.now.Add(c.late)
					passed += s.drain("k", id)
				}
				d := make([]headgate.Decision, 1)
				if err := s.TakeMany([]string{"k"}, id, 1, d); err != nil {
					t.Fatal(err)
				}
				if d[0].Verdict == headgate.Allow {
					passed++
				}
				passed += s.drain("k", id)
			}
			if passed > 10 {
				t.Errorf("%d passed at one instant, more than 10", passed)
			}
		})
	}
}

// TestReloadWhenBlocksAreFull: a lowered limit keeps the counts in the block that the key
// already has. No limited key passes for lack of a second block.
func TestReloadWhenBlocksAreFull(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 256 << 10})
	p := headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: 4, Limit: ten(time.Hour)}
	before := s.prepare(p)
	p.Limit.Count = 9
	lowered := s.prepare(p)
	p.SubWindows = 200
	larger := s.prepare(p)
	var limited []string
	keys := 20_000
	if race.On {
		keys /= 4
	}
	for i := range keys {
		if key := fmt.Sprint(i); s.take(key, before, 10).Reason == headgate.WithinLimit {
			limited = append(limited, key)
		}
	}
	for _, id := range []headgate.PolicyID{lowered, larger} {
		for _, key := range limited {
			if d := s.take(key, id, 9); d.Verdict == headgate.Allow {
				t.Fatalf("limited key %s took 9 more: %+v", key, d)
			}
		}
	}
	if len(limited) < 1000 {
		t.Errorf("only %d keys were limited", len(limited))
	}
}

// TestRefusalsWithoutRoom: no block is free, so a refused attempt cannot be counted. The
// refusal stays a refusal, whatever AllowOnFull says.
func TestRefusalsWithoutRoom(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 64 << 10, AllowOnFull: true})
	id := s.prepare(headgate.Policy{Algorithm: headgate.SlidingLog, CountRejected: true, Limit: headgate.Limit{Count: 1, Per: time.Hour}})
	s.take("victim", id, 1)
	for i := range 5000 {
		s.now++
		s.take(fmt.Sprint(i), id, 1)
	}
	s.now++
	if n := s.drain("victim", id); n > 0 {
		t.Errorf("the key passed %d times more", n)
	}
}

// TestLooksUnderAnotherLimit: Peek under a lower limit, or under a limit of 0, keeps the
// counts of the higher limit.
func TestLooksUnderAnotherLimit(t *testing.T) {
	for _, a := range headgate.Algorithms() {
		for _, lower := range []int64{0, 1} {
			s := newSteady(t, Config{MaxMemory: 1 << 20})
			p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 100, Per: time.Hour}}
			if a == headgate.SlidingWindow {
				p.SubWindows = 4
			}
			id := s.prepare(p)
			p.Limit.Count = lower
			other := s.prepare(p)
			for range 100 {
				s.now++
				s.take("k", id, 1)
			}
			s.do("k", other, 1, headgate.Peek)
			if d := s.take("k", id, 50); d.Verdict != headgate.Deny {
				t.Errorf("%s: 100 of 100 are used, and after a look under %d 50 more pass", a, lower)
			}
		}
	}
}

// TestManyWindows: a rule with the largest number of windows that a guard accepts works.
func TestManyWindows(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 4 << 20})
	var ops []headgate.Op
	for w := range 32 {
		id := s.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Duration(w+1) * time.Second}})
		ops = append(ops, headgate.Op{Key: "k", Policy: id, Window: uint8(w), Cost: 1})
	}
	decisions := make([]headgate.Decision, len(ops))
	if err := s.Apply(t.Context(), ops, decisions); err != nil {
		t.Fatal(err)
	}
	for w, d := range decisions {
		if d.Verdict != headgate.Allow || d.Receipt.Empty() {
			t.Fatalf("window %d: %v %v", w, d.Verdict, d.Reason)
		}
	}
}

// TestBookedInAFallingGroup: the departure of one Op could be booked, but the group is refused
// for another Op. The Decision still says when the departure would be.
func TestBookedInAFallingGroup(t *testing.T) {
	s := newSteady(t, Config{MaxMemory: 1 << 20})
	bookable := s.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}, MaxWait: 10 * time.Second})
	nothing := s.prepare(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Per: time.Second}})
	for range 2 {
		s.do("k", bookable, 1, headgate.Book)
	}
	decisions := make([]headgate.Decision, 2)
	if err := s.Apply(t.Context(), []headgate.Op{
		{Key: "k", Policy: bookable, Cost: 1, Kind: headgate.Book}, {Key: "z", Policy: nothing, Cost: 1},
	}, decisions); err != nil {
		t.Fatal(err)
	}
	if d := decisions[0]; d.Verdict != headgate.Wait || !d.Receipt.Empty() {
		t.Errorf("the one that could be booked: %v %v, receipt %+v", d.Verdict, d.Reason, d.Receipt)
	}
}
