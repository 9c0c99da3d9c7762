package memory_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// TestOneApplyIsMany: one Apply with many groups gives the same Decisions as one Apply for
// each group. The Ops are of all kinds, alone and in groups, with repeated keys, and more
// than one batch.
func TestOneApplyIsMany(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random, clock := rand.New(rand.NewPCG(seed, 0)), storetest.NewClock()
		var stores [2]*memory.Store
		var ids []headgate.PolicyID
		for i := range stores {
			store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			stores[i], ids = store, prepareKinds(t, store)
		}
		for range 3 {
			ops := randomGroups(random, ids, 1+random.IntN(100))
			together, alone := make([]headgate.Decision, len(ops)), make([]headgate.Decision, len(ops))
			if err := stores[0].Apply(t.Context(), ops, together); err != nil {
				t.Fatal(err)
			}
			for from := 0; from < len(ops); {
				to := from + 1
				for to < len(ops) && ops[to].Group == ops[from].Group {
					to++
				}
				if err := stores[1].Apply(t.Context(), ops[from:to], alone[from:to]); err != nil {
					t.Fatal(err)
				}
				from = to
			}
			for i := range ops {
				if got, want := withoutReceipt(together[i]), withoutReceipt(alone[i]); got != want || together[i].Receipt.Empty() != alone[i].Receipt.Empty() {
					t.Fatalf("seed %d, Op %d of %d, %+v: got %+v, want %+v", seed, i, len(ops), ops[i], got, want)
				}
			}
			clock.Advance(time.Duration(random.IntN(3)) * time.Second)
		}
	}
}

// prepareKinds prepares a limit of each algorithm. The interval of 60 a minute is a whole
// number of nanoseconds. The interval of 7 a minute is not.
func prepareKinds(t *testing.T, store *memory.Store) (ids []headgate.PolicyID) {
	t.Helper()
	for _, p := range []headgate.Policy{
		{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 60, Per: time.Minute, Burst: 4}},
		{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 7, Per: time.Minute, Burst: 4}},
		{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 60, Per: time.Minute, Burst: 4}},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 4, Per: time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 4, Per: time.Second}},
	} {
		id, err := store.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// randomGroups makes n or a few more Ops, in groups of one to three.
func randomGroups(random *rand.Rand, ids []headgate.PolicyID, n int) []headgate.Op {
	var ops []headgate.Op
	for group := uint8(0); len(ops) < n; group++ {
		windows := max(1, random.IntN(5)-1)
		for window := range windows {
			policy := random.IntN(len(ids))
			kind := headgate.OpKind(random.IntN(2))
			if policy < 3 && random.IntN(4) == 0 {
				kind = headgate.Book
			}
			ops = append(ops, headgate.Op{
				Key: strconv.Itoa(random.IntN(6)), Policy: ids[policy], Window: uint8(10*policy + window), Group: group,
				Kind: kind, Cost: int64(random.IntN(4)),
			})
		}
	}
	return ops
}

func withoutReceipt(d headgate.Decision) headgate.Decision {
	d.Receipt = headgate.Receipt{}
	return d
}

// TestBatchNeverGoesBack has a clock that moves on with every reading. The first take of a key reads
// it again, and the next take of the same call must not see the bucket at an earlier time.
func TestBatchNeverGoesBack(t *testing.T) {
	t.Parallel()
	now := headgate.Instant(time.Hour)
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { now++; return now }})
	if err != nil {
		t.Fatal(err)
	}
	id, err := store.Prepare(headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	for key, costs := range map[string][]int64{"two halves": {5, 5}, "one by one": {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		ops, decisions := make([]headgate.Op, len(costs)), make([]headgate.Decision, len(costs))
		left := int64(10)
		for i, cost := range costs {
			ops[i] = headgate.Op{Key: key, Policy: id, Group: uint8(i), Cost: cost}
		}
		if err := store.Apply(t.Context(), ops, decisions); err != nil {
			t.Fatal(err)
		}
		for i, cost := range costs {
			if left -= cost; decisions[i].Verdict != headgate.Allow || decisions[i].Remaining != left {
				t.Errorf("%s, take %d: %s with %d left, want %d", key, i+1, decisions[i].Verdict, decisions[i].Remaining, left)
			}
		}
	}
}
