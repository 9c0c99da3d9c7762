package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// TestRulesThatCannotBeActedOn: a program makes rules itself, without package config. Faults that
// config would have found are refused with the name of the rule. Otherwise every request would
// fail, or the rule would have no effect.
func TestRulesThatCannotBeActedOn(t *testing.T) {
	ban := headgate.Policy{Algorithm: headgate.Ban, Limit: perMinute(1), BanFor: time.Hour}
	degrade := guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1"}
	for want, change := range map[string]func(*guard.Rule){
		"no key":                  func(r *guard.Rule) { r.Key = nil },
		"0 limits":                func(r *guard.Rule) { r.Policies = nil },
		"33 limits":               func(r *guard.Rule) { r.Policies = make([]headgate.Policy, 33) },
		"mode 3":                  func(r *guard.Rule) { r.Mode = 3 },
		"fallback 4":              func(r *guard.Rule) { r.Fallback = 4 },
		"action 5":                func(r *guard.Rule) { r.Exceed.Action = 5 },
		"101 percent":             func(r *guard.Rule) { r.Soft = 101 },
		"status 42":               func(r *guard.Rule) { r.Exceed.Status = 42 }, // net/http panics.
		"status 204":              func(r *guard.Rule) { r.Exceed.Status = 204 },
		"status 404":              func(r *guard.Rule) { r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "/", Status: 404} },
		"no location":             func(r *guard.Rule) { r.Exceed.Action = guard.Redirect },
		"no header":               func(r *guard.Rule) { r.Exceed.Action = guard.Degrade },
		`write "X-Degraded"`:      func(r *guard.Rule) { r.Exceed = degrade; r.Exceed.Header = "x-degraded" }, // A forged header of a client would pass.
		`write "X-Cost"`:          func(r *guard.Rule) { r.CostHeader = "X-COST" },
		"no departures":           func(r *guard.Rule) { r.Exceed.Action = guard.Delay },
		"ban is no algorithm":     func(r *guard.Rule) { r.Policies[0] = ban },
		`override "a": ban is no`: func(r *guard.Rule) { r.Overrides = []guard.Override{{Value: "a", Policies: []headgate.Policy{ban}}} },
		"ban is no algorithm of":  func(r *guard.Rule) { r.Exceed = degrade; r.Exceed.Hard = ban },
		"period -1s": func(r *guard.Rule) {
			r.Exceed = degrade
			r.Exceed.Hard.Limit = headgate.Limit{Count: 1, Per: -time.Second}
		},
		"ban is negative":      func(r *guard.Rule) { r.Ban.For = -1 },
		"max_wait is negative": func(r *guard.Rule) { r.Exceed.MaxWait = -1 },
		`"a" duplicates "a"`: func(r *guard.Rule) {
			r.Overrides = []guard.Override{{Value: "a", Policies: r.Policies}, {Value: "a", Policies: r.Policies}}
		},
		"above the greatest": func(r *guard.Rule) { r.Cost = headgate.MaxUnits + 1 },
		"burst is not used by": func(r *guard.Rule) {
			r.Ban = guard.Ban{After: headgate.Limit{Count: 1, Per: time.Second, Burst: 1}, For: time.Hour}
		},
		"max_wait is not used by": func(r *guard.Rule) { r.Policies[0].MaxWait = time.Second },
	} {
		r := byClient(t, "product", "/p", perMinute(1))
		change(&r)
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		_, err = guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `rule "product"`) {
			t.Errorf("New gives %v, want an error with %q", err, want)
		}
	}
}

// TestLocalIsChecked: limits that Local cannot count are refused when the rules are made. The error
// has the rule and the fix. A failed reload changes nothing.
func TestLocalIsChecked(t *testing.T) {
	store, other := &shaky{Store: inMemory(t, nil)}, inMemory(t, nil)
	r := local(byClient(t, "product", "/p", perMinute(8)))
	with := func(change func(*guard.Rule)) []guard.Rule {
		changed := r
		change(&changed)
		return []guard.Rule{changed}
	}
	good := guard.Config{Rules: []guard.Rule{r}, Store: store, Local: other, LocalShare: 25}
	g, _ := newGuard(t, good)
	three := []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(3)}}
	for want, c := range map[string]guard.Config{
		"set Config.Local":            {Rules: good.Rules, LocalShare: 25},
		"fallback local has no store": {Rules: good.Rules, Local: store, LocalShare: 25},
		"1% to 100%, not 0%":          {Rules: good.Rules, Local: other},
		"1% to 100%, not 101%":        {Rules: good.Rules, Local: other, LocalShare: 101},
		"raise local_share to 13%":    {Rules: good.Rules, Local: other, LocalShare: 12},
		"product-hard: limit 3/1m":    {Rules: with(func(r *guard.Rule) { r.Exceed = degrade(); r.Exceed.Hard = three[0] }), Local: other, LocalShare: 25},
		"product-ban: limit 3/1m":     {Rules: with(func(r *guard.Rule) { r.Ban = guard.Ban{After: perMinute(3), For: time.Hour} }), Local: other, LocalShare: 25},
		`override "a": product: l`:    {Rules: with(func(r *guard.Rule) { r.Overrides = []guard.Override{{Value: "a", Policies: three}} }), Local: other, LocalShare: 25},
		"in Local: ":                  {Rules: good.Rules, Local: full{}, LocalShare: 25},
	} {
		c.Store = store
		for name, err := range map[string]error{"New": newError(c), "Reload": g.Reload(c)} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `rule "product": `) {
				t.Errorf("%s gives %v, want an error with %q", name, err, want)
			}
		}
	}
	store.down = true
	if a := decide(t, g, request("/p", "x")); a.Verdict != headgate.Allow || a.Closest().Limit.Count != 2 {
		t.Errorf("after reloads that failed: %v by %v", a.Verdict, a.Closest().Limit)
	}
	off := with(func(r *guard.Rule) { r.Mode = guard.Off })
	if err := g.Reload(guard.Config{Rules: off, Store: store}); err != nil {
		t.Errorf("a rule that is off needs no Local: %v", err)
	}
}

func newError(c guard.Config) error {
	_, err := guard.New(c)
	return err
}

// full is a store without capacity for another policy.
type full struct{ headgate.Store }

// Prepare implements headgate.Store.
func (full) Prepare(headgate.Policy) (headgate.PolicyID, error) {
	return 0, headgate.ErrTooManyPolicies
}
