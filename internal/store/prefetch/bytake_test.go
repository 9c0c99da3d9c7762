package prefetch

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
)

// TestGrantTakesTheMost: each group gets the largest number of units, from least to Cost, that
// passes all its limits. grantByTrying is the reference.
func TestGrantTakesTheMost(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 8))
	now := headgate.Instant(time.Hour)
	clock := func() headgate.Instant { return now }
	tried, given := memoryStore(t, clock), memoryStore(t, clock)
	var ids []headgate.PolicyID
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog} {
		for _, l := range []headgate.Limit{{Count: 7, Per: time.Second}, {Count: 30, Per: time.Minute}} {
			p := headgate.Policy{Algorithm: a, Limit: l}
			id, err := tried.Prepare(p)
			if same, bad := given.Prepare(p); err != nil || bad != nil || same != id {
				t.Fatal(err, bad)
			}
			ids = append(ids, id)
		}
	}
	partly := 0
	for range 3000 {
		now = now.Add(time.Duration(draw.Int64N(int64(time.Second))))
		var ops []headgate.Op
		var least []int64
		for group := range 1 + draw.IntN(4) {
			key, cost := string(rune('a'+group)), 1+draw.Int64N(12)
			low := 1 + draw.Int64N(min(cost, 7))
			kind := draw.IntN(3) * 2
			for window := range 1 + draw.IntN(2) {
				ops = append(ops, headgate.Op{Key: key, Policy: ids[kind+window], Window: uint8(kind + window), Group: uint8(group), Cost: cost})
				least = append(least, low)
			}
		}
		got, want := make([]headgate.Decision, len(ops)), make([]headgate.Decision, len(ops))
		if err := ByTake(given).Grant(t.Context(), ops, least, got); err != nil {
			t.Fatal(err)
		}
		grantByTrying(t, tried, ops, least, want)
		for i := range ops {
			if got[i].Verdict != want[i].Verdict || got[i].Receipt.Cost != want[i].Receipt.Cost || got[i].Remaining != want[i].Remaining {
				t.Fatalf("op %d of %+v, least %v: got %+v, want %+v", i, ops, least, got[i], want[i])
			}
			if n := got[i].Receipt.Cost; n > least[i] && n < ops[i].Cost {
				partly++
			}
		}
	}
	if partly < 100 {
		t.Errorf("only %d grants are between least and all", partly)
	}
}

func memoryStore(t *testing.T, clock func() headgate.Instant) *memory.Store {
	t.Helper()
	s, err := memory.New(memory.Config{MaxMemory: 8 << 20, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// grantByTrying tries one unit less until the group passes.
func grantByTrying(t *testing.T, s headgate.Store, ops []headgate.Op, least []int64, decisions []headgate.Decision) {
	t.Helper()
	var end int
	for begin := 0; begin < len(ops); begin = end {
		for end = begin; end < len(ops) && ops[end].Group == ops[begin].Group; {
			end++
		}
		group := append([]headgate.Op(nil), ops[begin:end]...)
		for n := group[0].Cost; n >= least[begin]; n-- {
			for i := range group {
				group[i].Cost = n
			}
			if err := s.Apply(t.Context(), group, decisions[begin:end]); err != nil {
				t.Fatal(err)
			}
			if allAllowed(decisions[begin:end]) {
				break
			}
		}
	}
}

func allAllowed(decisions []headgate.Decision) bool {
	for i := range decisions {
		if decisions[i].Verdict != headgate.Allow {
			return false
		}
	}
	return true
}

// failing is a store that fails from the second call on.
type failing struct {
	*memory.Store

	calls    int
	returned []headgate.Receipt
}

var errAway = errors.New("unreachable")

func (f *failing) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if f.calls++; f.calls > 1 {
		return errAway
	}
	return f.Store.Apply(ctx, ops, decisions)
}

func (f *failing) Return(_ context.Context, receipts []headgate.Receipt) error {
	f.returned = append(f.returned, receipts...)
	return nil
}

// TestGrantGivesBackOnFailure: units taken before a failing call are returned.
func TestGrantGivesBackOnFailure(t *testing.T) {
	f := &failing{Store: memoryStore(t, nil)}
	id, err := f.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	ops := []headgate.Op{{Key: "a", Policy: id, Cost: 3, Group: 1}, {Key: "b", Policy: id, Cost: 9, Group: 2}}
	err = ByTake(f).Grant(t.Context(), ops, []int64{1, 1}, make([]headgate.Decision, 2))
	if !errors.Is(err, errAway) || len(f.returned) != 1 || f.returned[0].Cost != 3 {
		t.Errorf("got %v, returned %+v", err, f.returned)
	}
}
