package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// every gives a policy of each algorithm, and a ban.
func every(l headgate.Limit) []headgate.Policy {
	var all []headgate.Policy
	for _, a := range headgate.Algorithms() {
		p := headgate.Policy{Algorithm: a, Limit: l}
		if a == headgate.SlidingWindow {
			p.SubWindows = 6
		}
		all = append(all, p)
	}
	all = append(all, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true, CountAll: true})
	return append(all, headgate.Policy{Algorithm: headgate.Ban, Limit: l, BanFor: l.Per / 4})
}

// TestHotPathAllocatesNothing: Take, Peek, Refund, TakeMany, groups and Forget, for every
// algorithm.
func TestHotPathAllocatesNothing(t *testing.T) {
	s, err := memory.New(memory.Config{MaxMemory: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range every(headgate.Limit{Count: 1000, Per: time.Minute}) {
		id := prepare(t, s, p)
		d := make([]headgate.Decision, 2)
		many := []string{"a", "b"}
		ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "l", Policy: id, Cost: 1, Window: 1}}
		peek := headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.Peek}
		never := headgate.Op{Key: "never seen", Policy: id, Cost: 1, Kind: headgate.Peek}
		all := slices.Clone(ops)
		all[0].Kind, all[1].Kind = headgate.TakeIfAll, headgate.TakeIfAll
		refund := func(op *headgate.Op) error {
			if !limit.Accepts(p.Algorithm, headgate.Refund) {
				return nil
			}
			return s.Take(&headgate.Op{Key: op.Key, Policy: id, Cost: 1, Kind: headgate.Refund}, &d[0])
		}
		for name, call := range map[string]func() error{
			"Take":          func() error { return s.Take(&ops[0], &d[0]) },
			"Peek":          func() error { return s.Take(&peek, &d[0]) },
			"Peek of a new": func() error { return s.Take(&never, &d[0]) },
			"TakeMany":      func() error { return s.TakeMany(many, id, 1, d) },
			"Apply":         func() error { return s.Apply(t.Context(), ops, d) },
			"Forget":        func() error { return s.Forget(t.Context(), ops) },
			"TakeIfAll":     func() error { return s.Apply(t.Context(), all, d) },
			"Refund":        func() error { return refund(&ops[0]) },
			"Refund, new":   func() error { return refund(&never) },
		} {
			if err := call(); err != nil {
				t.Fatal(err)
			}
			n := testing.AllocsPerRun(200, func() { _ = call() })
			if race.On && (name == "Apply" || name == "TakeIfAll") {
				continue // The working memory of a group comes from a sync.Pool.
			}
			if n != 0 {
				t.Errorf("%s of %s allocates %v times", name, p.Algorithm, n)
			}
		}
	}
}

// TestTakeManyIsTake: TakeMany gives the same Decisions as Take for each key, repeated keys
// included.
func TestTakeManyIsTake(t *testing.T) {
	for _, p := range every(headgate.Limit{Count: 5, Per: time.Second}) {
		clock := storetest.NewClock()
		single, batched := table2(t, clock), table2(t, clock)
		id, id2 := prepare(t, single, p), prepare(t, batched, p)
		r := rand.New(rand.NewPCG(1, 8))
		for range 200 {
			keys := make([]string, 1+r.IntN(70))
			for i := range keys {
				keys[i] = fmt.Sprint(r.IntN(40))
			}
			got := make([]headgate.Decision, len(keys))
			if err := batched.TakeMany(keys, id2, 1, got); err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				var want headgate.Decision
				_ = single.Take(&headgate.Op{Key: k, Policy: id, Cost: 1}, &want)
				want.Receipt, got[i].Receipt = headgate.Receipt{}, headgate.Receipt{}
				if got[i] != want {
					t.Fatalf("%s, key %s: batch %+v, alone %+v", p.Algorithm, k, got[i], want)
				}
			}
			clock.Advance(time.Duration(r.IntN(300)) * time.Millisecond)
		}
	}
}

func table2(t *testing.T, clock *storetest.Clock) *memory.Store {
	t.Helper()
	s, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWindowEdgesUnderLoad moves the clock over many window edges while goroutines call Take
// and TakeMany. By At, no window holds more than its limit. A limiter that computes the
// window before it locks the state loses counts here.
func TestWindowEdgesUnderLoad(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.FixedWindow, headgate.SlidingLog} {
		t.Run(a.String(), func(t *testing.T) {
			clock := storetest.NewClock()
			s := table2(t, clock)
			const limit, per = 50, 10 * time.Millisecond
			id := prepare(t, s, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: limit, Per: per}})
			taken := takeUnderLoad(t, s, id, clock)
			for from, n := range windows(a, taken, per) {
				if n > limit {
					t.Errorf("%d units in the window from %v, more than %d", n, from, limit)
				}
			}
		})
	}
}

// takeUnderLoad gives the number of units that passed at each time.
func takeUnderLoad(t *testing.T, s *memory.Store, id headgate.PolicyID, clock *storetest.Clock) map[headgate.Instant]int {
	t.Helper()
	var mu sync.Mutex
	taken := map[headgate.Instant]int{}
	note := func(ds ...headgate.Decision) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range ds {
			if d.Verdict == headgate.Allow {
				taken[d.At]++
			}
		}
	}
	var stop atomic.Bool
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			ds := make([]headgate.Decision, 3)
			for !stop.Load() {
				if g%2 == 0 {
					_ = s.Take(&headgate.Op{Key: "hot", Policy: id, Cost: 1}, &ds[0])
					note(ds[0])
				} else {
					_ = s.TakeMany([]string{"hot", "hot", "hot"}, id, 1, ds)
					note(ds...)
				}
			}
		})
	}
	for range 3000 {
		clock.Advance(777 * time.Microsecond)
	}
	stop.Store(true)
	all.Wait()
	return taken
}

// windows adds up the units taken in each window of the algorithm.
func windows(a headgate.Algorithm, taken map[headgate.Instant]int, per time.Duration) map[headgate.Instant]int {
	sums := map[headgate.Instant]int{}
	for at, n := range taken {
		if a == headgate.FixedWindow {
			sums[at-at%headgate.Instant(per)] += n
			continue
		}
		for end := range taken {
			if end >= at && end-at < headgate.Instant(per) {
				sums[end] += n
			}
		}
	}
	return sums
}

// TestRealClock: the default clock is monotonic, and near the wall clock.
func TestRealClock(t *testing.T) {
	s, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	before := s.Now()
	if off := time.Since(before.Time()).Abs(); off > time.Minute {
		t.Errorf("the store's clock is %v off", off)
	}
	if s.Now() < before {
		t.Error("the store's clock ran back")
	}
}
