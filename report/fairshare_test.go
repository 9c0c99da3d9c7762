package report

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// withShare is a guard's Config of the rules, and of fair share in a mode.
func withShare(mode guard.Mode) *guard.Config {
	return &guard.Config{Rules: rules(), FairShare: &guard.FairShare{Mode: mode}}
}

// shared gives what fair share decided, before the decisions of rules.
func shared(c *guard.Config, d headgate.Decision, results ...guard.Result) *guard.Answer {
	a, stands := answer(c.Rules, results...), c.FairShare.Rule()
	a.Results = append([]guard.Result{{
		Rule: &stands, Policy: guard.FairShareName, Stage: guard.FairShareName, Decision: d,
	}}, a.Results...)
	return a
}

var (
	within    = headgate.Decision{Reason: headgate.WithinLimit, Limit: 2, At: 3}
	over      = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverShare, Limit: 2, At: 4}
	anonymous = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.AnonymousClient, At: 5}
)

// Fair share is counted as a rule is, beside the rules, through every reload that
// leaves it there.
func TestFairShareIsCounted(t *testing.T) {
	r := New(Config{})
	defer r.Close()
	told := func(want string) {
		t.Helper()
		counted, ok := r.Stage(guard.FairShareName)
		if got := fmt.Sprint(counted.Counts); ok != (want != "") || ok && got != want {
			t.Errorf("%v, %s, want %s", ok, got, want)
		}
		if ok && (counted.Rule.Name != guard.FairShareName || counted.Fallbacks != nil) {
			t.Errorf("counted under %+v, with %v", counted.Rule, counted.Fallbacks)
		}
	}
	told("")
	r.Follow(rules()).Observe(nil, shared(withShare(guard.Enforce), over)) // Of a guard with more than was told of.
	told("")
	c := withShare(guard.Enforce)
	o := r.FollowConfig(c)
	told("[{allow within_limit 0} {deny over_share 0} {deny anonymous_client 0}]")
	o.Observe(nil, shared(c, within, allow(0), allow(0)))
	o.Observe(nil, shared(c, over))
	o.Observe(nil, shared(c, over, deny(0, headgate.OverLimit)))
	o.Observe(nil, shared(c, anonymous))
	o.Observe(nil, shared(c, headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never}))
	const all = "[{allow within_limit 1} {deny never 1} {deny over_share 2} {deny anonymous_client 1}]"
	told(all)
	if n, m := r.of("product", headgate.Allow, headgate.WithinLimit), r.of("product", headgate.Deny, headgate.OverLimit); n != 1 || m != 1 {
		t.Errorf("product is counted %d and %d times, want once each", n, m)
	}
	if n := r.Unmatched(); n != 0 {
		t.Errorf("%d requests that nobody spoke for, want none: fair share did", n)
	}
	r.PrepareConfig(&guard.Config{}) // A guard turns it down.
	told(all)
	r.FollowConfig(withShare(guard.Shadow)).Observe(nil, shared(withShare(guard.Shadow), over))
	if counted, _ := r.Stage(guard.FairShareName); counted.Rule.Mode != guard.Shadow {
		t.Errorf("the mode is %v", counted.Rule.Mode)
	}
	r.FollowConfig(withShare(guard.Off))
	told("")
	r.FollowConfig(c)
	told("[{allow within_limit 1} {deny never 1} {deny over_share 3} {deny anonymous_client 1}]")
	r.Follow(rules())
	told("")
	r.FollowConfig(c)
	told("[{allow within_limit 0} {deny over_share 0} {deny anonymous_client 0}]")
}

// Refusals of fair share are lines of the log as those of rules are, without the
// client's name.
func TestFairShareIsLogged(t *testing.T) {
	out, c := new(output), withShare(guard.Shadow)
	r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), PerSecond: 3})
	o := r.FollowConfig(c)
	o.Observe(nil, shared(c, within))
	o.Observe(nil, shared(c, over))
	r.Close()
	got := out.lines(t)
	if len(got) != 1 {
		t.Fatalf("%d lines, want that of the refusal: %v", len(got), got)
	}
	for name, want := range map[string]any{
		"rule": "fair_share", "policy": "fair_share", "mode": "shadow", "verdict": "deny", "reason": "over_share", "at": 4.0, "limit": 2.0,
	} {
		if got[0][name] != want {
			t.Errorf("%s is %v, want %v", name, got[0][name], want)
		}
	}
}

func TestObserveFairShareDoesNotAllocate(t *testing.T) {
	c := withShare(guard.Enforce)
	r := New(Config{Log: slog.New(slog.DiscardHandler), PerSecond: 1})
	o := r.FollowConfig(c)
	defer r.Close()
	for _, a := range []*guard.Answer{shared(c, over), shared(c, within, allow(0))} {
		if n := testing.AllocsPerRun(1000, func() { o.Observe(nil, a) }); n != 0 {
			t.Errorf("Observe takes %v allocations, want 0", n)
		}
	}
}
