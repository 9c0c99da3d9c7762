package guard_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// counted is a store that counts the users of its policies.
type counted struct {
	headgate.Store

	mu    sync.Mutex
	users map[headgate.PolicyID]int
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	s, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Store: s, users: map[headgate.PolicyID]int{}}
}

// Prepare implements headgate.Store.
func (s *counted) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	id, err := s.Store.Prepare(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.users[id]++
	}
	return id, err
}

// Release implements headgate.Store.
func (s *counted) Release(id headgate.PolicyID) {
	s.mu.Lock()
	s.users[id]--
	s.mu.Unlock()
	s.Store.Release(id)
}

// inUse gives the number of policies with users. It fails on a policy that was released too often.
func (s *counted) inUse(t *testing.T) (n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, users := range s.users {
		if users < 0 {
			t.Fatalf("policy %d was released more often than prepared", id)
		}
		if users > 0 {
			n++
		}
	}
	return n
}

// collects reports whether want policies are in use after some garbage collections.
func (s *counted) collects(t *testing.T, want int, within time.Duration) bool {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); {
		runtime.GC()
		if s.inUse(t) == want {
			return true
		}
		runtime.Gosched()
	}
	return false
}

func manyRules(t *testing.T, rules, count int) []guard.Rule {
	t.Helper()
	all := make([]guard.Rule, rules)
	for i := range all {
		all[i] = byClient(t, fmt.Sprint("rule-", i), "/p", perMinute(int64(count+i)))
	}
	return all
}

// TestReloadReleases: a reload releases the former limits after their last request. Limits that the
// new rules also have stay.
func TestReloadReleases(t *testing.T) {
	store := newCounted(t)
	slow := byClient(t, "slow", "/slow", headgate.Limit{Count: 1, Per: time.Hour})
	slow.Policies[0].Algorithm = headgate.TokenBucket
	slow.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: 2 * time.Hour}
	rules := append(manyRules(t, 5, 100), slow)
	g, err := guard.New(guard.Config{Store: store, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	waiting := new(guard.Answer)
	for range 2 {
		if err := g.Decide(t.Context(), request("/slow", "x"), waiting); err != nil {
			t.Fatal(err)
		}
	}
	if waiting.Verdict != headgate.Wait {
		t.Fatalf("the second request of one an hour: %v", waiting.Verdict)
	}
	for i := range 3 { // Two limits are unchanged.
		if err := g.Reload(guard.Config{Store: store, Rules: manyRules(t, 5, 100+3*(i+1))}); err != nil {
			t.Fatal(err)
		}
	}
	if !store.collects(t, 6+5, 20*time.Second) {
		t.Errorf("%d limits are in use, want 6 that a request waits under and 5 of the rules", store.inUse(t))
	}
	for range 5 {
		runtime.GC()
	}
	if n := store.inUse(t); n != 11 {
		t.Errorf("%d limits are in use while a request waits under 6 of them, want 11", n)
	}
	if err := g.Cancel(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	// The Answer is filled under other rules.
	if err := g.Decide(t.Context(), request("/p", "x"), waiting); err != nil {
		t.Fatal(err)
	}
	if !store.collects(t, 5, 20*time.Second) {
		t.Errorf("%d limits are in use, want the 5 of the rules", store.inUse(t))
	}
	runtime.KeepAlive(waiting)
	runtime.KeepAlive(g)
}

// TestDroppedGuardReleases: an unreachable guard releases its limits.
func TestDroppedGuardReleases(t *testing.T) {
	store := newCounted(t)
	if _, err := guard.New(guard.Config{Store: store, Rules: manyRules(t, 5, 100)}); err != nil {
		t.Fatal(err)
	}
	if !store.collects(t, 0, 20*time.Second) {
		t.Errorf("%d limits of a guard that was dropped are in use", store.inUse(t))
	}
}

// TestFailedReloadReleases: a refused reload leaves no policy prepared.
func TestFailedReloadReleases(t *testing.T) {
	store := newCounted(t)
	g, err := guard.New(guard.Config{Store: store, Rules: manyRules(t, 2, 100)})
	if err != nil {
		t.Fatal(err)
	}
	bad := manyRules(t, 3, 500)
	bad[2].Policies[0].Limit.Count = -1
	if err := g.Reload(guard.Config{Store: store, Rules: bad}); err == nil {
		t.Fatal("a limit below 0 was loaded")
	}
	if n := store.inUse(t); n != 2 {
		t.Errorf("%d limits are in use after a refused reload, want 2", n)
	}
	runtime.KeepAlive(g)
}

// TestReloadOfEverNewLimits: a store never becomes full because of reloads.
func TestReloadOfEverNewLimits(t *testing.T) {
	store := newCounted(t)
	const each = 3000
	rules := func(version int) []guard.Rule {
		r := byClient(t, "a", "/p", perMinute(1))
		for i := range each {
			own := headgate.Policy{Limit: perMinute(int64(version*each + i + 2))}
			r.Overrides = append(r.Overrides, guard.Override{Value: fmt.Sprint(i), Policies: []headgate.Policy{own}})
		}
		return []guard.Rule{r}
	}
	g, err := guard.New(guard.Config{Store: store, Rules: rules(0)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		if err := g.Reload(guard.Config{Store: store, Rules: rules(i + 1)}); err != nil {
			t.Fatalf("reload %d: %v", i, err)
		}
	}
	runtime.KeepAlive(g)
}
