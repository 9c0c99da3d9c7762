package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/store/memory"
)

func degrade() guard.Exceed {
	return guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1"}
}

// TestDegradedWaitsForNothing: one limit of a rule that degrades is used up. The other limits book
// nothing, and no request waits.
func TestDegradedWaitsForNothing(t *testing.T) {
	r := byClient(t, "shaped", "/p", headgate.Limit{Count: 10, Per: 10 * time.Second}, headgate.Limit{Count: 1, Per: time.Minute})
	for i := range r.Policies {
		r.Policies[i].Algorithm = headgate.LeakyBucket
	}
	r.Exceed = degrade()
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.Degraded},
		{verdict: headgate.Allow, reason: headgate.Degraded},
	})
	if n := g.Waiting("shaped"); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// TestManyGroups: many rules match, and each independent rule is its own group. Group numbers
// repeat, but never for neighbours.
func TestManyGroups(t *testing.T) {
	for n := 250; n <= 260; n++ {
		rules := []guard.Rule{byClient(t, "alone", "/p", perMinute(0))}
		for i := range n {
			r := byClient(t, fmt.Sprint("r", i), "/p", perMinute(5))
			r.Exceed = degrade()
			rules = append(rules, r)
		}
		for i := range rules {
			rules[i].Mode = guard.Shadow
		}
		g, _ := newGuard(t, guard.Config{Rules: rules})
		a := decide(t, g, request("/p", "a"))
		for i := range a.Results[1:] {
			if left := a.Results[1+i].Decision.Remaining; left != 4 {
				t.Fatalf("%d rules: %s has %d left, want 4: another rule's refusal is its own", n, a.Results[1+i].Policy, left)
			}
		}
	}
}

// TestCountRejectedIsTheLimits: the limit that counts decides whether refused attempts count, also
// when it is an override's limit.
func TestCountRejectedIsTheLimits(t *testing.T) {
	counting := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(5), CountRejected: true}
	other := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(5)}
	r := byClient(t, "r", "/p")
	r.Policies, r.Exceed = []headgate.Policy{counting}, degrade()
	r.Overrides = []guard.Override{{Value: "a", Policies: []headgate.Policy{other}}}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r, byClient(t, "narrow", "/p", perMinute(1))}})
	// One request passes, and the rule narrow refuses the others. Remaining is reported before the
	// units of a refused request are returned.
	for client, want := range map[string]int64{"a": 3, "b": 0} {
		for range 4 {
			decide(t, g, request("/p", client))
		}
		if left := decide(t, g, request("/p", client)).Results[0].Decision.Remaining; left != want {
			t.Errorf("%s: %d left, want %d", client, left, want)
		}
	}
}

// TestAfterAnError: an answer is empty after an error. Units of the previous request are not returned a
// second time.
func TestAfterAnError(t *testing.T) {
	r := byClient(t, "a", "/p", perMinute(10))
	r.CostHeader = "X-Cost"
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "b", "/p", perMinute(10)), r}})
	var a guard.Answer
	negative, stated := request("/p", "x"), request("/p", "x")
	negative.Cost, stated.Header = -1, headers{"X-Client-Id": "x", "X-Cost": "many"}
	for n, bad := range []*headgate.Request{negative, stated} {
		if err := g.Decide(t.Context(), request("/p", "x"), &a); err != nil {
			t.Fatal(err)
		}
		if left, want := a.Closest().Decision.Remaining, int64(9-n); left != want {
			t.Errorf("%d left, want %d", left, want)
		}
		if err := g.Decide(t.Context(), bad, &a); !errors.Is(err, headgate.ErrBadCost) || len(a.Results) != 0 || a.Closest() != nil {
			t.Errorf("a bad cost gives %v and %d results", err, len(a.Results))
		}
		if err := g.Cancel(t.Context(), &a); err != nil {
			t.Error(err)
		}
	}
}

// lines are headers with several values.
type lines map[string][]string

// Lookup implements headgate.Values.
func (l lines) Lookup(name string) (string, bool) {
	if len(l[name]) == 0 {
		return "", false
	}
	return l[name][0], true
}

// Lines implements headgate.Lines.
func (l lines) Lines(name string) []string { return l[name] }

// TestTwoCosts: a request with two stated costs is refused, because the service may use the other one.
func TestTwoCosts(t *testing.T) {
	r := byClient(t, "a", "/p", perMinute(10))
	r.CostHeader = "X-Cost"
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	req := request("/p", "x")
	req.Header = lines{"X-Client-Id": {"x"}, "X-Cost": {"1", "9"}}
	var a guard.Answer
	if _, found := errortype.As[*guard.CostError](g.Decide(t.Context(), req, &a)); !found {
		t.Errorf("two costs count as %d", 10-a.Closest().Decision.Remaining)
	}
}

// slow is a store with a Return that waits for the end of its context.
type slow struct{ headgate.Store }

// Return implements headgate.Store.
func (slow) Return(ctx context.Context, _ []headgate.Receipt) error {
	<-ctx.Done()
	return ctx.Err()
}

// ReturnLast implements headgate.LastReturner.
func (slow) ReturnLast(ctx context.Context, _ *headgate.Receipt) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// TestReturnKeepsToTheBudget: the return of units is part of the decision, or of the wait, and keeps to
// the same budget.
func TestReturnKeepsToTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		counted, delayed := byClient(t, "counted", "/p", perMinute(5)), bucket(t, "delayed", "/q", perMinute(60))
		counted.Exceed = degrade()
		delayed.Policies[0].Limit.Burst, delayed.Exceed = 1, guard.Exceed{Action: guard.Delay, MaxWait: time.Hour}
		g, err := guard.New(guard.Config{
			Rules: []guard.Rule{counted, byClient(t, "none", "/p", perMinute(0)), delayed},
			Store: slow{store}, StoreTimeout: 20 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Deny || !errors.Is(a.StoreError, context.DeadlineExceeded) {
			t.Errorf("%v, store error %v", a.Verdict, a.StoreError)
		}
		decide(t, g, request("/q", "a"))
		a := decide(t, g, request("/q", "a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Wait(ctx, a); !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: Wait gives %v", a.Verdict, err)
		}
		if elapsed := time.Since(began); elapsed != 40*time.Millisecond {
			t.Errorf("it took %v, want 20ms for each", elapsed)
		}
	})
}

// TestCancelEndsShadowWaits: Cancel also frees the place in a shadow rule.
func TestCancelEndsShadowWaits(t *testing.T) {
	rule := bucket(t, "enforced", "/p", headgate.Limit{Count: 1, Per: time.Minute, Burst: 1})
	rule.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Hour}
	trial := rule
	trial.Name, trial.Mode = "trial", guard.Shadow
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{rule, trial}})
	decide(t, g, request("/p", "a"))
	a := decide(t, g, request("/p", "a"))
	if n, m := g.Waiting("enforced"), g.Waiting("trial"); n != 1 || m != 1 {
		t.Errorf("%d and %d wait, want 1 and 1", n, m)
	}
	if err := g.Cancel(t.Context(), a); err != nil {
		t.Error(err)
	}
	if n, m := g.Waiting("enforced"), g.Waiting("trial"); n != 0 || m != 0 {
		t.Errorf("%d and %d wait, want none", n, m)
	}
}
