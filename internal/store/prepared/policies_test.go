package prepared_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prepared"
)

func limitOf(n int64) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{Count: n, Per: time.Second}}
}

func text(p headgate.Policy) (*string, error) {
	s := p.Limit.String()
	return &s, nil
}

// newPolicies makes a registry that keeps a policy for a minute after its last user.
func newPolicies(now *atomic.Int64) *prepared.Policies[string] {
	p := new(prepared.Policies[string])
	p.Open(prepared.Config[string]{Compile: text, Expiry: prepared.Expiry[string]{
		Now:  func() headgate.Instant { return headgate.Instant(now.Load()) },
		Life: func(*prepared.Policy[string]) time.Duration { return time.Minute },
	}})
	return p
}

func prepare(tb testing.TB, p *prepared.Policies[string], n int64) headgate.PolicyID {
	tb.Helper()
	id, err := p.Prepare(limitOf(n))
	if err != nil {
		tb.Fatalf("policy %d: %v", n, err)
	}
	return id
}

func Example() {
	var policies prepared.Policies[string]
	policies.Open(prepared.Config[string]{Compile: text})
	id, err := policies.Prepare(limitOf(5))
	fmt.Println(id, err, policies.Get(id).Plan)
	policies.Release(id)
	fmt.Println(policies.Get(id))
	// Output:
	// 1 <nil> 5/1s
	// <nil>
}

// TestOneIDEach: many callers prepare at once. Equal policies have one id and one plan. A policy
// that was not prepared has no plan.
func TestOneIDEach(t *testing.T) {
	policies := newPolicies(new(atomic.Int64))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range int64(200) {
				id, err := policies.Prepare(limitOf(n))
				if err != nil {
					t.Error(err)
					return
				}
				if got := policies.Get(id); got == nil || got.Plan != limitOf(n).Limit.String() {
					t.Errorf("policy %d has the plan of another: %v", n, got)
				}
			}
		})
	}
	all.Wait()
	if policies.Get(0) != nil || policies.Get(200) == nil || policies.Get(201) != nil {
		t.Error("200 policies have other ids than 1 to 200")
	}
}

// TestRefusals: a policy that cannot be compiled has no id. The number of policies is bounded,
// and the bound for policies that clients name is lower.
func TestRefusals(t *testing.T) {
	unfit := errors.New("does not fit")
	var none prepared.Policies[string]
	none.Open(prepared.Config[string]{Compile: func(headgate.Policy) (*string, error) { return nil, unfit }})
	if _, err := none.Prepare(limitOf(1)); !errors.Is(err, unfit) {
		t.Errorf("%v, want that of Compile", err)
	}
	now := new(atomic.Int64)
	policies := newPolicies(now)
	for n := range int64(prepared.Most - prepared.Reserve) {
		p := limitOf(n)
		p.Named = true
		id, err := policies.Prepare(p)
		if err != nil {
			t.Fatalf("named policy %d: %v", n, err)
		}
		policies.Release(id)
	}
	further := limitOf(prepared.Most)
	further.Named = true
	if _, err := policies.Prepare(further); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("a named policy above the reserve: %v", err)
	}
	if id := prepare(t, policies, 5); id != 6 {
		t.Errorf("a policy that is known has the id %d, want 6", id)
	}
	for n := range int64(prepared.Reserve) {
		prepare(t, policies, prepared.Most+n)
	}
	if _, err := policies.Prepare(limitOf(-1)); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("one policy too many: %v", err)
	}
	now.Add(int64(time.Minute))
	prepare(t, policies, -1)
	if open, released := policies.Counts(); open != prepared.Reserve+2 || released != 0 {
		t.Errorf("a minute later %d policies are open and %d released, want %d and none", open, released, prepared.Reserve+2)
	}
}

// TestUsersAreCounted: a policy is open until its last user releases it, and keeps its id until
// it is freed. Prepared again after that, it has another id.
func TestUsersAreCounted(t *testing.T) {
	now := new(atomic.Int64)
	policies := newPolicies(now)
	id := prepare(t, policies, 1)
	prepare(t, policies, 1)
	policies.Release(id)
	if policies.Get(id) == nil {
		t.Fatal("a policy with a user is not open")
	}
	policies.Release(id)
	policies.Release(id) // The policy has no user.
	if policies.Get(id) != nil || policies.Issuer(id) == nil {
		t.Fatal("a released policy is open, or its receipts are unknown")
	}
	if again := prepare(t, policies, 1); again != id || policies.Get(id) == nil {
		t.Fatalf("prepared again within its life the policy has the id %d, want %d", again, id)
	}
	policies.Release(id)
	now.Add(int64(time.Minute))
	other := prepare(t, policies, 2)
	if policies.Issuer(id) != nil || policies.Find(limitOf(1)) != nil {
		t.Error("a freed policy is known")
	}
	if again := prepare(t, policies, 1); again == id || again == other {
		t.Errorf("a freed policy has the id %d again, beside %d", again, other)
	}
}

// TestNoIDComesBack: ids differ although slots are reused.
func TestNoIDComesBack(t *testing.T) {
	now := new(atomic.Int64)
	policies := newPolicies(now)
	seen := make(map[headgate.PolicyID]bool)
	for n := range int64(200_000) {
		id := prepare(t, policies, n)
		if id == 0 || seen[id] {
			t.Fatalf("policy %d has the id %d of another one", n, id)
		}
		seen[id] = true
		policies.Release(id)
		now.Add(int64(20 * time.Millisecond))
	}
	if open, released := policies.Counts(); open != 0 || released > 3001 {
		t.Errorf("%d policies are open and %d released, want none and those of a minute", open, released)
	}
}

// TestAgainstAMap compares users, ids and lifetimes of many policies, in random order, with a
// simple map.
func TestAgainstAMap(t *testing.T) {
	type known struct {
		id    headgate.PolicyID
		users int
		until int64
	}
	now, r := new(atomic.Int64), rand.New(rand.NewPCG(1, 2))
	policies, model := newPolicies(now), map[int64]*known{}
	for range 50_000 {
		n := r.Int64N(50)
		m := model[n]
		if m != nil && m.users == 0 && m.until <= now.Load() {
			m = nil
		}
		switch r.IntN(4) {
		case 0:
			// The registry frees policies when another one is prepared or released.
			id := prepare(t, policies, n)
			if m == nil || m.id != id {
				if m != nil {
					t.Fatalf("policy %d has the id %d, want %d", n, id, m.id)
				}
				m = &known{id: id}
				model[n] = m
			}
			m.users++
		case 1:
			if m != nil && m.users > 0 {
				policies.Release(m.id)
				if m.users--; m.users == 0 {
					m.until = now.Load() + int64(time.Minute)
				}
			}
		case 2:
			now.Add(r.Int64N(int64(10 * time.Second)))
			prepare(t, policies, 1000+now.Load())
		default:
			if m != nil && (policies.Get(m.id) != nil) != (m.users > 0) {
				t.Fatalf("policy %d has %d users, open: %v", n, m.users, policies.Get(m.id) != nil)
			}
		}
	}
}

// TestFreedIsCollected: the garbage collector frees the plan of a freed policy.
func TestFreedIsCollected(t *testing.T) {
	now := new(atomic.Int64)
	policies := newPolicies(now)
	var before, after runtime.MemStats
	for n := range int64(150_000) {
		if n == 70_000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		policies.Release(prepare(t, policies, n))
		now.Add(int64(time.Second))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("80,000 policies more take %d bytes more", grown)
	}
	runtime.KeepAlive(policies)
}

// TestUseBesideRelease: an Op that has found its policy keeps the policy until its state
// expires, also when the last user releases the policy before the Op is counted.
func TestUseBesideRelease(t *testing.T) {
	p := new(prepared.Policies[string])
	p.Open(prepared.Config[string]{Compile: text, Expiry: prepared.Expiry[string]{
		Now: func() headgate.Instant { return 0 },
		Life: func(e *prepared.Policy[string]) time.Duration {
			if !e.Used() {
				return 0
			}
			return time.Minute
		},
	}})
	used, unused := prepare(t, p, 1), prepare(t, p, 2)
	if p.GetToUse(used) == nil {
		t.Fatal("a policy with a user is not found")
	}
	p.Release(used)
	p.Release(unused)
	if p.Issuer(used) == nil || p.Issuer(unused) != nil {
		t.Errorf("the used one is kept: %v, the other: %v", p.Issuer(used) != nil, p.Issuer(unused) != nil)
	}
	if p.GetToUse(used) != nil || p.GetToUse(used+1000) != nil {
		t.Error("a policy without users decides")
	}
}
