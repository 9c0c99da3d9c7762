package guard_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// unknownPlan is what a configuration has for a plan that only its source knows.
func unknownPlan() guard.Plan { return guard.Plan{Name: "free", Missing: true} }

// TestMissingPlan: a request whose customer's plan is missing is refused with a reason of its own. Nothing is counted, neither by a
// meter nor in another rule. A customer with a known plan is decided as always.
func TestMissingPlan(t *testing.T) {
	l := newLedger()
	other := byClient(t, "other", "/a", headgate.Limit{Count: 5, Per: day})
	c := guard.Config{
		Meter: l, Rules: []guard.Rule{counting(t, "api", "/a"), other},
		Quotas: quotas(t, []guard.Plan{unknownPlan(), metering(1, 2)}, guard.Customer{Name: "known", Plan: "paid"}),
	}
	g, _ := newGuard(t, c)
	for range 3 {
		a := decide(t, g, request("/a", "x"))
		r := a.Closest()
		if a.Verdict != headgate.Deny || r == nil || r.Decision.Reason != headgate.PlanMissing || r.Rule.Name != "api" || r.Final() {
			t.Fatalf("got %s %+v, want a refusal by api with plan_missing", a.Verdict, r)
		}
		if !r.Decision.Reason.Overloaded() {
			t.Error("a missing plan is the server's fault, not the client's")
		}
	}
	l.want(t, "a missing plan", "")
	if got, want := answerOf(decide(t, g, request("/a", "known"))), "allow within_limit 0/1 metered 0"; got != want {
		t.Errorf("a customer with a plan: got %s, want %s", got, want)
	}
	l.want(t, "a plan", "known/calls 1 0 0;")

	c.Rules, c.Store = c.Rules[1:], g.Store()
	if err := g.Reload(c); err != nil {
		t.Fatal(err)
	}
	a := decide(t, g, request("/a", "x"))
	if left, all := a.Results[0].Decision.Remaining, other.Policies[0].Limit.Count; left != all-1 {
		t.Errorf("the other rule has %d of %d left: the refused requests counted there", left, all)
	}
}

// TestMissingPlanInShadow: a rule in shadow reports a missing plan, and refuses nothing.
func TestMissingPlanInShadow(t *testing.T) {
	l := newLedger()
	r := counting(t, "api", "/a")
	r.Mode = guard.Shadow
	g, _ := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{unknownPlan()})})
	a := decide(t, g, request("/a", "x"))
	if a.Verdict != headgate.Allow || len(a.Results) != 1 || a.Results[0].Decision.Reason != headgate.PlanMissing {
		t.Errorf("got %s, %+v", a.Verdict, a.Results)
	}
	l.want(t, "shadow", "")
}

// TestMissingPlanIsAlone: a missing plan has nothing but its name.
func TestMissingPlanIsAlone(t *testing.T) {
	p := metering(1, 2)
	p.Missing = true
	if _, err := guard.NewQuotas([]guard.Plan{p}, p.Name, nil); err == nil {
		t.Error("a missing plan with limits was accepted")
	}
}

// TestWithoutState: while some rules are not known, every request is refused, whether a rule matches or not, with the reason that says
// most. Calls of gRPC's health pass. After a reload, the rules decide, and nothing was counted.
func TestWithoutState(t *testing.T) {
	l := newLedger()
	c := guard.Config{
		WithoutState: true, Meter: l, ForwardsGRPC: true,
		Rules:  []guard.Rule{counting(t, "api", "/a"), byClient(t, "known", "/b", headgate.Limit{Count: 5, Per: day})},
		Quotas: quotas(t, []guard.Plan{unknownPlan(), metering(10, 20)}, guard.Customer{Name: "payer", Plan: "paid"}),
	}
	g, _ := newGuard(t, c)
	for _, want := range []struct {
		path, client string
		reason       headgate.Reason
	}{
		{"/none", "x", headgate.SourceUnavailable},
		{"/b", "x", headgate.SourceUnavailable},
		{"/a", "payer", headgate.SourceUnavailable},
		{"/a", "x", headgate.PlanMissing},
	} {
		a := decide(t, g, request(want.path, want.client))
		if r := a.Closest(); a.Verdict != headgate.Deny || len(a.Results) != 1 || r == nil || r.Decision.Reason != want.reason {
			t.Errorf("%s of %s: got %s, %+v, want %s", want.path, want.client, a.Verdict, a.Results, want.reason)
		}
	}
	probe := headgate.Request{Method: "POST", Path: healthCheck, Header: fieldsOf{"Content-Type": "application/grpc"}}
	if v := verdict(t, g, probe); v != headgate.Allow {
		t.Errorf("a call of gRPC's health: got %s", v)
	}
	l.want(t, "without state", "")
	answers := make([]guard.Answer, 2)
	g.DecideAll(t.Context(), []headgate.Request{*request("/b", "x"), *request("/none", "x")}, answers)
	refused := func(a guard.Answer) bool { return a.Verdict == headgate.Deny && a.Error == nil }
	if slices.IndexFunc(answers, func(a guard.Answer) bool { return !refused(a) }) >= 0 {
		t.Errorf("many requests at once: got %+v", answers)
	}

	c.WithoutState, c.Store = false, g.Store()
	if err := g.Reload(c); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]headgate.Verdict{"/none": headgate.Allow, "/b": headgate.Allow, "/a": headgate.Deny} {
		if a := decide(t, g, request(path, "x")); a.Verdict != want {
			t.Errorf("with state, %s: got %s, want %s", path, a.Verdict, want)
		}
	}
}

// TestWithoutStateAllocations: a refusal allocates nothing.
func TestWithoutStateAllocations(t *testing.T) {
	g, _ := newGuard(t, guard.Config{
		WithoutState: true, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{unknownPlan()}),
	})
	var a guard.Answer
	for _, path := range []string{"/none", "/a"} {
		req := request(path, "x")
		one := func() { _ = g.Decide(t.Context(), req, &a) }
		one()
		if n := testing.AllocsPerRun(100, one); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}
