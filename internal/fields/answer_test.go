package fields_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// scripted is a store that returns decisions[n] for the n-th Op, and the last decision for
// all further Ops.
type scripted struct {
	headgate.Store

	decisions []headgate.Decision
}

func (s scripted) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (s scripted) Release(headgate.PolicyID) {}

func (s scripted) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		decisions[i] = s.decisions[min(i, len(s.decisions)-1)]
	}
	return nil
}

func (s scripted) Return(context.Context, []headgate.Receipt) error { return nil }

// named returns a rule for all clients: 100 per minute, with a warning above 80.
func named(name string, mode guard.Mode) guard.Rule {
	all, _ := rule.ParsePart("all")
	return guard.Rule{
		Rule:     rule.Rule{Name: name, Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
		Soft:     80, Mode: mode,
	}
}

// answer returns a guard's answer for rules with the given decisions.
func answer(t *testing.T, rules []guard.Rule, decisions ...headgate.Decision) *guard.Answer {
	t.Helper()
	g, err := guard.New(guard.Config{Rules: rules, Store: scripted{decisions: decisions}, Independent: true})
	if err != nil {
		t.Fatal(err)
	}
	a := new(guard.Answer)
	if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, a); err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	far    = headgate.Decision{Reason: headgate.WithinLimit, Limit: 100, Remaining: 90, ResetAfter: time.Second}
	near   = headgate.Decision{Reason: headgate.WithinLimit, Limit: 100, Remaining: 10, ResetAfter: time.Second}
	beyond = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 100, RetryAfter: time.Second}
)

// TestAnnounceAnswers checks the fields from no rule at all to several rules that warn.
func TestAnnounceAnswers(t *testing.T) {
	var remembering fields.Announcer
	search, product, shadow := named("search", guard.Enforce), named("product", guard.Enforce), named("new", guard.Shadow)
	for _, c := range []struct {
		name  string
		style fields.Style
		a     *guard.Answer
		want  http.Header
	}{
		{"no rule", fields.Draft, answer(t, nil, far), http.Header{}},
		{"a shadow rule has no fields", fields.Draft, answer(t, []guard.Rule{shadow}, near), http.Header{}},
		{
			"the closest of two", fields.Draft, answer(t, []guard.Rule{search, product}, far, headgate.Decision{Limit: 100, Remaining: 50}),
			http.Header{"Ratelimit-Policy": {`"product";q=100;w=60`}, "Ratelimit": {`"product";r=50;t=0`}},
		},
		{
			"a warning", fields.Draft, answer(t, []guard.Rule{search, product}, near, far),
			http.Header{
				"Ratelimit-Policy": {`"search";q=100;w=60`}, "Ratelimit": {`"search";r=10;t=1`},
				"Headgate-Warning": {`soft-limit; policy="search"`},
			},
		},
		{
			"two warnings in one list, in any style", fields.None, answer(t, []guard.Rule{search, product, shadow}, near),
			http.Header{"Headgate-Warning": {`soft-limit; policy="search", soft-limit; policy="product"`}},
		},
		{
			"a refused request has no warning", fields.None, answer(t, []guard.Rule{search, product}, near, beyond), http.Header{},
		},
	} {
		got, again := http.Header{}, http.Header{}
		c.style.Announce(got, c.a)
		remembering.Announce(c.style, fields.Map(again), c.a)
		if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s: got %v without a cache and %v with one, want %v", c.name, got, again, c.want)
		}
	}
}

// TestAnnouncerRemembersRightly checks that a caching Announcer writes the same as one
// without a cache, whichever limits share a name and a cache index.
func TestAnnouncerRemembersRightly(t *testing.T) {
	var remembering fields.Announcer
	rules := make([]guard.Rule, 20)
	for i := range rules {
		rules[i] = named(fmt.Sprint("rule", i), guard.Enforce)
		rules[i].Policies[0].Limit = headgate.Limit{Count: int64(i % 3), Per: time.Duration(1+i%2) * time.Minute}
	}
	for range 3 {
		for i := range rules {
			for _, name := range []string{"one", "other", "third"} {
				rules[i].Name = name
				a := answer(t, rules[i:i+1], far)
				got, want := http.Header{}, http.Header{}
				remembering.Announce(fields.Draft, fields.Map(got), a)
				fields.Draft.Announce(want, a)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("got fields %v, want %v", got, want)
				}
			}
		}
	}
}

// TestAnnounceAllocations checks that all fields need one allocation.
func TestAnnounceAllocations(t *testing.T) {
	var n fields.Announcer
	a, h := answer(t, []guard.Rule{named("product", guard.Enforce)}, far), http.Header{}
	for style, want := range map[fields.Style]float64{fields.Draft: 1, fields.XRateLimit: 1, fields.Draft03: 1, fields.None: 0} {
		n.Announce(style, fields.Map(h), a)
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			n.Announce(style, fields.Map(h), a)
		}); got != want {
			t.Errorf("style %v needs %v allocations, want %v", style, got, want)
		}
		if style == fields.Draft {
			want = 2 // The policy is written each time.
		}
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			style.Announce(h, a)
		}); got != want {
			t.Errorf("style %v without a cache needs %v allocations, want %v", style, got, want)
		}
	}
}

// TestDetail checks that every reason has its own sentence. The sentence names the policy
// and, if a later request can pass, the time of Retry-After.
func TestDetail(t *testing.T) {
	sentences := map[string]headgate.Reason{}
	for _, reason := range headgate.Reasons() {
		r := &guard.Result{
			Policy: "search-1m", Limit: headgate.Limit{Count: 100, Per: time.Minute},
			Decision: headgate.Decision{Reason: reason, RetryAfter: 7*time.Second + 1},
		}
		refused := true
		switch reason {
		case headgate.NoRule, headgate.WithinLimit, headgate.SoftLimit, headgate.Degraded, headgate.Metered, headgate.Scheduled, headgate.Never,
			headgate.AnonymousClient, headgate.InFlight, headgate.KeyMissing:
			refused = false
		default:
		}
		got := fields.Detail(r)
		if got[len(got)-1] != '.' || strings.Contains(got, "retry in 8 s.") != refused {
			t.Errorf("%v: got unexpected sentence %q", reason, got)
		}
		nameless := reason == headgate.StoreFull || reason == headgate.StoreUnavailable
		if strings.Contains(got, "search-1m") == nameless {
			t.Errorf("%v: sentence %q, want it to name the policy: %v", reason, got, !nameless)
		}
		if other, twice := sentences[got]; twice && reason != headgate.WithinLimit {
			t.Errorf("%v and %v have the same sentence: %q", reason, other, got)
		}
		sentences[got] = reason
	}
}
