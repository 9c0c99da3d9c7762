package report

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// withShare returns a guard.Config with the rules, and with fair share in a mode.
func withShare(mode guard.Mode) *guard.Config {
	return &guard.Config{Rules: rules(), FairShare: &guard.FairShare{Mode: mode}}
}

// shared returns an answer with the decision of fair share before the results of rules.
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

// Fair share is counted like a rule. Its counters survive every reload that keeps it.
func TestFairShareIsCounted(t *testing.T) {
	r := New(Config{})
	defer r.Close()
	wantLine := func(want string) {
		t.Helper()
		counted, ok := r.Stage(guard.FairShareName)
		if got := fmt.Sprint(counted.Counts); ok != (want != "") || ok && got != want {
			t.Errorf("fair share: found %v, counts %s, want %s", ok, got, want)
		}
		if ok && (counted.Rule.Name != guard.FairShareName || counted.Fallbacks != nil) {
			t.Errorf("fair share: counted under rule %+v, with fallbacks %v", counted.Rule, counted.Fallbacks)
		}
	}
	wantLine("")
	r.Follow(rules()).Observe(nil, shared(withShare(guard.Enforce), over)) // This observer has no fair share, but the guard has it.
	wantLine("")
	c := withShare(guard.Enforce)
	o := r.FollowConfig(c)
	wantLine("[{allow within_limit 0} {deny over_share 0} {deny anonymous_client 0}]")
	o.Observe(nil, shared(c, within, allow(0), allow(0)))
	o.Observe(nil, shared(c, over))
	o.Observe(nil, shared(c, over, deny(0, headgate.OverLimit)))
	o.Observe(nil, shared(c, anonymous))
	o.Observe(nil, shared(c, headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never}))
	const all = "[{allow within_limit 1} {deny never 1} {deny over_share 2} {deny anonymous_client 1}]"
	wantLine(all)
	if n, m := r.count("product", headgate.Allow, headgate.WithinLimit), r.count("product", headgate.Deny, headgate.OverLimit); n != 1 || m != 1 {
		t.Errorf("product: got counts %d and %d, want 1 and 1", n, m)
	}
	if n := r.Unmatched(); n != 0 {
		t.Errorf("got %d unmatched requests, want 0: fair share matched them", n)
	}
	r.PrepareConfig(&guard.Config{}) // A guard refuses this configuration.
	wantLine(all)
	r.FollowConfig(withShare(guard.Shadow)).Observe(nil, shared(withShare(guard.Shadow), over))
	if counted, _ := r.Stage(guard.FairShareName); counted.Rule.Mode != guard.Shadow {
		t.Errorf("got mode %v", counted.Rule.Mode)
	}
	r.FollowConfig(withShare(guard.Off))
	wantLine("")
	r.FollowConfig(c)
	wantLine("[{allow within_limit 1} {deny never 1} {deny over_share 3} {deny anonymous_client 1}]")
	r.Follow(rules())
	wantLine("")
	r.FollowConfig(c)
	wantLine("[{allow within_limit 0} {deny over_share 0} {deny anonymous_client 0}]")
}

// Refusals of fair share are logged like refusals of rules, without the client's name.
func TestFairShareIsLogged(t *testing.T) {
	out, c := new(logs.Text), withShare(guard.Shadow)
	r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), PerSecond: 3})
	o := r.FollowConfig(c)
	o.Observe(nil, shared(c, within))
	o.Observe(nil, shared(c, over))
	r.Close()
	got := linesOf(t, out)
	if len(got) != 1 {
		t.Fatalf("got %d lines, want 1 for the refusal: %v", len(got), got)
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
