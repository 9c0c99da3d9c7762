package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
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

// TestLimitsOfClients: limits that clients name come and go in flat memory. The full sizes
// are those of TestSoakLimitsOfClients.
func TestLimitsOfClients(t *testing.T) {
	storetest.Churn{Limits: 140_000, Every: 86 * time.Millisecond, Per: time.Minute, Kept: 1000}.Run(t, released)
}

// TestFullOfLimits: a store full of limits of a year takes a reload, and is empty when
// they have expired.
func TestFullOfLimits(t *testing.T) { storetest.Fill(t, released) }

// TestSlotsAreSwept: what an expired policy has left in the table means nothing to the
// policy that has its slot next, of whatever algorithm.
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
	for shift := range len(kinds(hour)) {
		clock := storetest.NewClock() // At the start of an hour.
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
			p, more := next[at], n%4096 // A log of more has no room.
			p.Limit.Count += more
			p.Limit.Per += time.Duration(max(0, 16-n/4096)) * 8 * time.Millisecond // The slots come back when it is an hour.
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

// TestReleaseWhileSlotsAreReused: slots of freed policies are in use again while callers
// take, prepare, release and try ids that they have released. No id decides for another
// policy, and a policy with a user is there.
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
	for n := range int64(66_000) { // Every slot is used once.
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
				n := 1000 + i%3000 + c // Some are those of other callers.
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
