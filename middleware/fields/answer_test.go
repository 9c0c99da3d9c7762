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
	"github.com/headgate/headgate/middleware/fields"
	"github.com/headgate/headgate/rule"
)

// scripted is a store that decides the n-th Op as its n-th decision says, and
// further ones as its last.
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

// named is a rule for everybody, of 100 a minute, that warns above 80.
func named(name string, mode guard.Mode) guard.Rule {
	all, _ := rule.ParsePart("all")
	return guard.Rule{
		Rule:     rule.Rule{Name: name, Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
		Soft:     80, Mode: mode,
	}
}

// answer is what a guard says whose rules are decided as the decisions say.
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

// What an answer is told with, from no rule at all to several that warn.
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
		{"a shadow rule is not told of", fields.Draft, answer(t, []guard.Rule{shadow}, near), http.Header{}},
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
			"two warnings are one list, and in any style", fields.None, answer(t, []guard.Rule{search, product, shadow}, near),
			http.Header{"Headgate-Warning": {`soft-limit; policy="search", soft-limit; policy="product"`}},
		},
		{
			"a refused request is not warned", fields.None, answer(t, []guard.Rule{search, product}, near, beyond), http.Header{},
		},
	} {
		got, again := http.Header{}, http.Header{}
		c.style.Announce(got, c.a)
		remembering.Announce(c.style, again, c.a)
		if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s: %v and %v, want %v", c.name, got, again, c.want)
		}
	}
}

// An Announcer that remembers says what one without memory says, whatever limits
// share a name and a place.
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
				remembering.Announce(fields.Draft, got, a)
				fields.Draft.Announce(want, a)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("announced %v, want %v", got, want)
				}
			}
		}
	}
}

// TestAnnounceAllocations: once for all the fields.
func TestAnnounceAllocations(t *testing.T) {
	var n fields.Announcer
	a, h := answer(t, []guard.Rule{named("product", guard.Enforce)}, far), http.Header{}
	for style, want := range map[fields.Style]float64{fields.Draft: 1, fields.XRateLimit: 1, fields.Draft03: 1, fields.None: 0} {
		n.Announce(style, h, a)
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			n.Announce(style, h, a)
		}); got != want {
			t.Errorf("%v takes %v allocations, want %v", style, got, want)
		}
		if style == fields.Draft {
			want = 2 // The policy is written each time.
		}
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			style.Announce(h, a)
		}); got != want {
			t.Errorf("%v without memory takes %v allocations, want %v", style, got, want)
		}
	}
}

// Every reason has a sentence of its own, which names the policy and, where a later
// attempt can pass, the time of Retry-After.
func TestDetail(t *testing.T) {
	sentences := map[string]headgate.Reason{}
	for _, reason := range headgate.Reasons() {
		r := &guard.Result{
			Policy: "search-1m", Limit: headgate.Limit{Count: 100, Per: time.Minute},
			Decision: headgate.Decision{Reason: reason, RetryAfter: 7*time.Second + 1},
		}
		refused := true
		switch reason {
		case headgate.NoRule, headgate.WithinLimit, headgate.SoftLimit, headgate.Degraded, headgate.Scheduled, headgate.Never,
			headgate.AnonymousClient:
			refused = false
		default:
		}
		got := fields.Detail(r)
		if got[len(got)-1] != '.' || strings.Contains(got, "retry in 8 s.") != refused {
			t.Errorf("%v: %q", reason, got)
		}
		nameless := reason == headgate.StoreFull || reason == headgate.StoreUnavailable
		if strings.Contains(got, "search-1m") == nameless {
			t.Errorf("%v: %q, want the name of the policy: %v", reason, got, !nameless)
		}
		if other, twice := sentences[got]; twice && reason != headgate.WithinLimit {
			t.Errorf("%v and %v have one sentence: %q", reason, other, got)
		}
		sentences[got] = reason
	}
}
