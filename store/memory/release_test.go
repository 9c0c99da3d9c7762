package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

func released(t *testing.T, clock *storetest.Clock) headgate.Store {
	t.Helper()
	return ofMemory(t, 16<<20, clock)
}

func ofMemory(t *testing.T, bytes int64, clock *storetest.Clock) headgate.Store {
	t.Helper()
	s, err := memory.New(memory.Config{MaxMemory: bytes, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLimitsOfClients: clients name limits and drop them, in flat memory.
// TestSoakLimitsOfClients runs the full sizes.
func TestLimitsOfClients(t *testing.T) {
	storetest.Churn{Limits: race.Fewer(140_000, 14_000), Every: 86 * time.Millisecond, Per: time.Minute, Kept: 1000}.Run(t, released)
}

// TestFullOfLimits: a store is full of limits of a year. A reload still works, and the store
// is empty when the limits have expired.
func TestFullOfLimits(t *testing.T) {
	if race.On {
		return // It has one goroutine, and as many limits as a store takes.
	}
	storetest.Fill(t, released)
}

// TestSlotsAreSwept: state of an expired policy in the table does not affect the next policy
// in the same slot, whatever the algorithms.
func TestSlotsAreSwept(t *testing.T) {
	minute, hour := headgate.Limit{Count: 10, Per: time.Minute}, headgate.Limit{Count: 10, Per: time.Hour}
	kinds := func(l headgate.Limit) []headgate.Policy {
		return []headgate.Policy{
			{Limit: l},
			{Algorithm: headgate.FixedWindow, Limit: l},
			{Algorithm: headgate.SlidingLog, Limit: l},
			{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 8},
			{Algorithm: headgate.Ban, Limit: l, BanFor: time.Minute},
		}
	}
	for shift := range race.Fewer(len(kinds(hour)), 1) {
		clock := storetest.NewClock() // The clock starts at the start of an hour.
		s := ofMemory(t, 1<<20, clock)
		take := func(id headgate.PolicyID, key int) headgate.Decision {
			ds := make([]headgate.Decision, 1)
			op := headgate.Op{Key: fmt.Sprint("k", key), Policy: id, Cost: 10}
			if err := s.Apply(t.Context(), []headgate.Op{op}, ds); err != nil {
				t.Fatal(err)
			}
			return ds[0]
		}
		prepare := func(p headgate.Policy) headgate.PolicyID {
			id, err := s.Prepare(p)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		first := kinds(minute)
		for i, p := range first {
			id := prepare(p)
			take(id, i)
			s.Release(id)
		}
		clock.Advance(10 * time.Minute)
		next := kinds(hour)
		for n, met := int64(0), 0; met < len(first); n++ {
			at := (met + shift) % len(next)
			p, more := next[at], n%4096 // A larger log does not fit into a block.
			p.Limit.Count += more
			p.Limit.Per += time.Duration(max(0, 16-n/4096)) * 8 * time.Millisecond // After an hour the slots are free again.
			id := prepare(p)
			if slot := int(id & 0xffff); id > 0xffff && slot <= len(first) {
				if d := take(id, slot-1); d.Verdict != headgate.Allow || d.Remaining != more {
					t.Errorf("%s in the slot of %s: %d of %d remain, %v", p.Algorithm, first[slot-1].Algorithm, d.Remaining, n, d.Verdict)
				}
				met++
			}
			s.Release(id)
		}
	}
}

// TestReleaseWhileSlotsAreReused: callers take, prepare, release, and try released ids, while
// freed slots are used again. No id decides for another policy, and a policy in use is never
// freed.
func TestReleaseWhileSlotsAreReused(t *testing.T) {
	clock := storetest.NewClock()
	s := released(t, clock)
	fresh := func(n int64) headgate.PolicyID {
		id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: n, Per: time.Second}})
		if err != nil {
			t.Error(err)
		}
		return id
	}
	for n := range int64(66_000) { // This loop uses every slot once.
		s.Release(fresh(1_000_000 + n))
	}
	held := fresh(77)
	var all sync.WaitGroup
	for c := range int64(4) {
		all.Go(func() {
			old := make([]headgate.PolicyID, 256)
			counts := make([]int64, len(old))
			ds := make([]headgate.Decision, 1)
			for i := range int64(5000) {
				n := 1000 + i%3000 + c // Some of these limits belong to other callers.
				id := fresh(n)
				for _, op := range []struct {
					id    headgate.PolicyID
					count int64
					must  bool
				}{{id, n, true}, {held, 77, true}, {old[i%256], counts[i%256], false}} {
					if op.id == 0 {
						continue
					}
					err := s.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: op.id, Cost: 0}}, ds)
					if err == nil && ds[0].Limit != op.count || err != nil && op.must {
						t.Errorf("the id of a limit of %d decides under a limit of %d: %v", op.count, ds[0].Limit, err)
						return
					}
				}
				old[i%256], counts[i%256] = id, n
				s.Release(id)
				clock.Advance(time.Millisecond)
			}
		})
	}
	all.Wait()
}
