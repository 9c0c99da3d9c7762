package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/storetest"
)

// recorder is a store that records prepared policies and prefetches nothing. Policies that differ
// only in their prefetch settings have different ids.
type recorder struct {
	headgate.Store

	prepared map[headgate.PolicyID]headgate.Policy
	inner    map[headgate.PolicyID]headgate.PolicyID
}

func newRecorder(t *testing.T, clock *storetest.Clock) *recorder {
	t.Helper()
	return &recorder{inMemory(t, clock), map[headgate.PolicyID]headgate.Policy{}, map[headgate.PolicyID]headgate.PolicyID{}}
}

// Prepare implements headgate.Store.
func (s *recorder) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	id := headgate.PolicyID(len(s.prepared) + 100)
	s.prepared[id] = policy
	policy.Hold, policy.Batch = 0, 0
	inner, err := s.Store.Prepare(policy)
	s.inner[id] = inner
	return id, err
}

// Release implements headgate.Store. Prepared policies stay.
func (s *recorder) Release(headgate.PolicyID) {}

// Apply implements headgate.Store.
func (s *recorder) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		ops[i].Policy = s.inner[ops[i].Policy]
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestPrefetch: the prefetch settings of a limit reach the store, for that limit only, and do not reach
// Local. A reload that changes them keeps the counts.
func TestPrefetch(t *testing.T) {
	clock := storetest.NewClock()
	store, own := newRecorder(t, clock), newRecorder(t, clock)
	rules := func(hold time.Duration) []guard.Rule {
		r := local(byClient(t, "product", "/p", perMinute(8), headgate.Limit{Count: 100, Per: time.Hour}))
		r.Policies[0].Hold, r.Policies[0].Batch = hold, 2
		r.Ban = guard.Ban{For: time.Hour}
		r.Exceed = degrade()
		r.Exceed.Hard = headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(9)}
		return []guard.Rule{r}
	}
	g, _ := newGuard(t, guard.Config{Store: store, Local: own, LocalShare: 50, Rules: rules(time.Second)})
	held := 0
	for _, policy := range store.prepared {
		if policy.Hold != 0 || policy.Batch != 0 {
			held++
			if policy.Hold != time.Second || policy.Batch != 2 || policy.Limit != perMinute(8) || policy.Algorithm != headgate.FixedWindow {
				t.Errorf("the store is to hold units of %+v", policy)
			}
		}
	}
	for _, policy := range own.prepared {
		if policy.Hold != 0 || policy.Batch != 0 {
			t.Errorf("Local is to hold units of %+v", policy)
		}
	}
	if held != 1 || len(store.prepared) != 4 || len(own.prepared) != 4 {
		t.Errorf("%d of %d limits are held, %d in Local", held, len(store.prepared), len(own.prepared))
	}
	decide(t, g, request("/p", "a"))
	if err := g.Reload(guard.Config{Store: store, Local: own, LocalShare: 50, Rules: rules(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if left := decide(t, g, request("/p", "a")).Closest().Decision.Remaining; left != 6 {
		t.Errorf("after a reload that holds longer %d of 8 are left, want 6", left)
	}
}
