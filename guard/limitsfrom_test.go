package guard_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// stating is a rule of 3 a minute in which a header states the limit, up to 8 a minute.
func stating(tb testing.TB, algorithm headgate.Algorithm) guard.Rule {
	tb.Helper()
	value, err := rule.ParsePart("header:X-Limit")
	if err != nil {
		tb.Fatal(err)
	}
	r := byClient(tb, "client", "/p", perMinute(3))
	r.LimitsFrom = guard.LimitsFrom{Value: value, Most: r.Policies[0]}
	for _, p := range []*headgate.Policy{&r.Policies[0], &r.LimitsFrom.Most} {
		if p.Algorithm = algorithm; algorithm == headgate.SlidingWindow {
			p.SubWindows = 4
		}
	}
	r.LimitsFrom.Most.Limit.Count = 8
	return r
}

// statingGuard makes a guard of one rule that trusts 192.0.2.0/24.
func statingGuard(tb testing.TB, r guard.Rule) (*guard.Guard, *storetest.Clock) {
	tb.Helper()
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 4 << 20, Clock: clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	g, err := guard.New(guard.Config{
		Rules: []guard.Rule{r}, Store: store, Clock: clock.Now,
		Identity: &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return g, clock
}

func withLimit(client, limit string) *headgate.Request {
	req := request("/p", client)
	h := headers{"X-Client-Id": client}
	if limit != "" {
		h["X-Limit"] = limit
	}
	req.Header = h
	return req
}

// TestStatedLimits: which limit decides, by the text that a trusted peer sends.
func TestStatedLimits(t *testing.T) {
	g, _ := statingGuard(t, stating(t, headgate.FixedWindow))
	for i, c := range []struct {
		text string
		want int64
		by   guard.Stated
	}{
		{"5/m", 5, guard.StatedUsed},
		{"5/60s", 5, guard.StatedUsed},
		{"5", 5, guard.StatedUsed},
		{"0/m", 0, guard.StatedUsed},
		{"8/m", 8, guard.StatedUsed},
		{"9/m", 8, guard.StatedUsed},
		{"9007199254740991/m", 8, guard.StatedUsed},
		{"", 3, guard.StatedAbsent},
		{"5/s", 3, guard.StatedInvalid}, // A period that the rule does not have would begin a new count.
		{"5/month", 3, guard.StatedInvalid},
		{"-1", 3, guard.StatedInvalid},
		{"5/m ", 3, guard.StatedInvalid},
		{"5/m, 9/m", 3, guard.StatedInvalid},
		{"99999999999999999999/m", 3, guard.StatedInvalid},
		{"00000000000000000000000000000000000000000000000005/m", 3, guard.StatedInvalid},
		{"unlimited", 3, guard.StatedInvalid},
	} {
		a := decide(t, g, withLimit(fmt.Sprint("c", i), c.text))
		if r := a.Results[0]; r.Limit.Count != c.want || r.Stated != c.by || len(a.Results) != 1 {
			t.Errorf("%q: %d by a limit that is %q, want %d and %q", c.text, r.Limit.Count, r.Stated, c.want, c.by)
		}
	}
	req := withLimit("outside", "8/m")
	req.IP = netip.MustParseAddr("203.0.113.1")
	if r := decide(t, g, req).Results[0]; r.Limit.Count != 3 || r.Stated != guard.StatedAbsent {
		t.Errorf("a peer that is not trusted: %d by a limit that is %q", r.Limit.Count, r.Stated)
	}
	if state, err := g.Peek(t.Context(), guard.KeyName{Rule: "client", Values: []string{"c0"}}); err != nil || !state.Stated ||
		state.Limits[0].Limit.Count != 3 || state.Limits[0].Used != 1 {
		t.Errorf("a key is %+v, %v; want that requests state limits, and the limit of those that state none", state, err)
	}
	if n := g.Stated("client", guard.StatedInvalid); n != 8 {
		t.Errorf("%d invalid limits are counted, want 8", n)
	}
}

// TestStatedLimitBesideMost: a limit with another period than Most has decides beside it. An override comes first.
func TestStatedLimitBesideMost(t *testing.T) {
	r := stating(t, headgate.FixedWindow)
	r.LimitsFrom.Most.Limit = headgate.Limit{Count: 2, Per: time.Second}
	r.Overrides = []guard.Override{{Value: "gold", Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(7)}}}}
	g, clock := statingGuard(t, r)
	for i, want := range []string{"", "", "client-1s", "", "", "client-1m"} {
		a := decide(t, g, withLimit("a", "4/m"))
		if got := a.Closest(); (a.Verdict == headgate.Deny) != (want != "") || want != "" && got.Policy != want {
			t.Errorf("request %d: %v by %s, want a refusal by %q", i, a.Verdict, got.Policy, want)
		}
		if i == 2 {
			clock.Advance(time.Second)
		}
	}
	if r := decide(t, g, withLimit("gold", "1/m")).Results[0]; r.Limit.Count != 7 || r.Stated != guard.NotStated {
		t.Errorf("an override has %d by a limit that is %q", r.Limit.Count, r.Stated)
	}
}

// TestStatedLimitChanges: used units stay used when the text changes, and when a request states none.
func TestStatedLimitChanges(t *testing.T) {
	for _, algorithm := range headgate.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			g, _ := statingGuard(t, stating(t, algorithm))
			for _, step := range []struct {
				text string
				pass int
			}{{"2/m", 2}, {"", 1}, {"6/m", 3}, {"1/m", 0}, {"", 0}, {"9/m", 2}, {"8/m", 0}} {
				n := 0
				for n < 20 && decide(t, g, withLimit("a", step.text)).Verdict != headgate.Deny {
					n++
				}
				if n != step.pass {
					t.Errorf("with %q, %d pass, want %d", step.text, n, step.pass)
				}
			}
		})
	}
}

// TestStatedLimitsAreBounded: beyond MaxStatedLimits the rule's limits decide. Limits that no request states leave, and the store
// gets them back.
func TestStatedLimitsAreBounded(t *testing.T) {
	r := stating(t, headgate.FixedWindow)
	r.LimitsFrom.Most.Limit.Count = 1 << 40
	g, clock := statingGuard(t, r)
	a := new(guard.Answer)
	state := func(n int) guard.Stated {
		if err := g.Decide(t.Context(), withLimit("a", fmt.Sprint(n+10, "/m")), a); err != nil {
			t.Fatal(err)
		}
		return a.Results[0].Stated
	}
	for n := range guard.MaxStatedLimits + 5 {
		if got, want := state(n), n < guard.MaxStatedLimits; (got == guard.StatedUsed) != want {
			t.Fatalf("limit %d is %q, want it used: %t", n, got, want)
		}
	}
	clock.Advance(10 * time.Minute)
	state(guard.MaxStatedLimits + 5) // From now on, limits are new or unused.
	clock.Advance(10 * time.Minute)
	if got := state(1); got != guard.StatedUsed {
		t.Errorf("a kept limit is %q", got)
	}
	if got := state(guard.MaxStatedLimits + 6); got != guard.StatedUsed {
		t.Errorf("when the others have left, a new limit is %q", got)
	}
	runtime.KeepAlive(g)
}

// TestStatedLimitsCostNothing: a decision with a known limit, and one without a limit, allocates nothing.
func TestStatedLimitsCostNothing(t *testing.T) {
	g, _ := statingGuard(t, stating(t, headgate.TokenBucket))
	for _, text := range []string{"5/m", ""} {
		a, req := new(guard.Answer), withLimit("a", text)
		if n := testing.AllocsPerRun(200, func() { _ = g.Decide(t.Context(), req, a) }); n != 0 {
			t.Errorf("%q: %v allocations", text, n)
		}
	}
}

// TestStatedLimitsAtFault: what a rule with LimitsFrom lacks.
func TestStatedLimitsAtFault(t *testing.T) {
	for name, change := range map[string]func(*guard.Rule){
		"no limits": func(r *guard.Rule) { r.Policies, r.InFlight = nil, 5 },
		"no most":   func(r *guard.Rule) { r.LimitsFrom.Most.Limit = headgate.Limit{} },
	} {
		r := stating(t, headgate.FixedWindow)
		change(&r)
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store}); err == nil {
			t.Errorf("%s: there is no fault", name)
		}
	}
}
