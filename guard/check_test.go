package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// TestRulesThatCannotBeActedOn: what a program writes by itself, and config would
// have refused, is refused with the name of the rule. Taken, it would fail with
// every request, or be passed over without a word.
func TestRulesThatCannotBeActedOn(t *testing.T) {
	ban := headgate.Policy{Algorithm: headgate.Ban, Limit: perMinute(1), BanFor: time.Hour}
	degrade := guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1"}
	for want, change := range map[string]func(*guard.Rule){
		"no key":                  func(r *guard.Rule) { r.Key = nil },
		"0 limits":                func(r *guard.Rule) { r.Policies = nil },
		"33 limits":               func(r *guard.Rule) { r.Policies = make([]headgate.Policy, 33) },
		"mode 3":                  func(r *guard.Rule) { r.Mode = 3 },
		"fallback 2":              func(r *guard.Rule) { r.Fallback = 2 },
		"action 4":                func(r *guard.Rule) { r.Exceed.Action = 4 },
		"101 percent":             func(r *guard.Rule) { r.Soft = 101 },
		"status 42":               func(r *guard.Rule) { r.Exceed.Status = 42 }, // net/http panics.
		"status 204":              func(r *guard.Rule) { r.Exceed.Status = 204 },
		"status 404":              func(r *guard.Rule) { r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "/", Status: 404} },
		"no location":             func(r *guard.Rule) { r.Exceed.Action = guard.Redirect },
		"no header":               func(r *guard.Rule) { r.Exceed.Action = guard.Degrade },
		`write "X-Degraded"`:      func(r *guard.Rule) { r.Exceed = degrade; r.Exceed.Header = "x-degraded" }, // What clients forge would stay.
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
		`"a" is "a" again`: func(r *guard.Rule) {
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
