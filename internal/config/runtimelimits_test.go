package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
)

// parsed reads a configuration.
func parsedRules(t *testing.T, rules string) *Config {
	t.Helper()
	c, err := Parse("c.yaml", []byte("version: 1\nrules:\n"+rules+"proxy: {upstream: \"http://127.0.0.1:1\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWithTrials: trials stand behind their rules, count the same requests, and never keep a configuration from its effect.
func TestWithTrials(t *testing.T) {
	c := parsedRules(t, `  - {name: a, key: [ip], limits: ["20/1s"], burst: 40, cost: 3, ban: {after: 90/1m, for: 1h}, overrides: {192.0.2.1: {limits: ["90/1s"]}}}
  - {name: b, key: [ip], limits: ["5/1m"], mode: shadow, in_flight: 3}
  - {name: taken, key: [ip], limits: ["5/1m"]}
`)
	trials := []Trial{
		{Name: "a.trial", Rule: "a", NewLimits: NewLimits{Limits: []string{"25/1s", "500/1h"}}},
		{Name: "a.other", Rule: "a", NewLimits: NewLimits{Limits: []string{"25/1s"}, Burst: 7}},
		{Name: "b.trial", Rule: "b", NewLimits: NewLimits{Limits: []string{"7/1m"}}},
		{Name: "taken", Rule: "b", NewLimits: NewLimits{Limits: []string{"7/1m"}}},
		{Name: "gone", Rule: "c", NewLimits: NewLimits{Limits: []string{"7/1m"}}},
		{Name: "bad", Rule: "b", NewLimits: NewLimits{Limits: []string{"7/x"}}},
	}
	shadow := ModeOverride{Mode: guard.Shadow}
	got := c.WithModes(ModeOverrides{All: &shadow}).WithTrials(trials)
	var names []string
	for i := range got.Rules {
		r := &got.Rules[i]
		names = append(names, r.Name+" "+r.Mode.String()+" "+strings.Join(LimitTexts(r.Policies), "+"))
		if r.TrialOf == "a" && (r.Cost != 3 || len(r.Overrides) != 1 || r.Ban != guard.Ban{} || r.Switch != nil || r.Fallback != guard.FallbackAllow) {
			t.Errorf("%+v", r)
		}
	}
	want := "[a shadow 20/1s burst 40 a.trial shadow 25/1s burst 40+500/1h burst 40 a.other shadow 25/1s burst 7 " +
		"b shadow 5/1m b.trial shadow 7/1m taken shadow 5/1m]"
	if fmt.Sprint(names) != want {
		t.Errorf("%v\nwant %s", names, want)
	}
	if len(c.Rules) != 3 || c.WithTrials(nil) != c {
		t.Error("the configuration itself has changed, or is copied without a trial")
	}
	if out := fmt.Sprint(TrialLeavesOut(&c.Rules[0]), TrialLeavesOut(&c.Rules[1])); out != "[ban] [in_flight]" {
		t.Errorf("left out: %s", out)
	}
}

// TestTrialName: names are those of rules, and differ with the rule, the limits and the burst.
func TestTrialName(t *testing.T) {
	long := strings.Repeat("x", 60)
	seen := map[string]bool{}
	for _, r := range []string{"search", long} {
		for _, n := range []NewLimits{{Limits: []string{"25/1s"}}, {Limits: []string{"25/1m"}}, {Limits: []string{"25/1s"}, Burst: 9}, {Limits: []string{"25/1s", "9/month"}}} {
			name := TrialName(r, &n)
			if seen[name] || len(name) > 64 {
				t.Errorf("%s has %d bytes, or is there twice", name, len(name))
			}
			seen[name] = true
		}
	}
	if !seen["search.trial-25-1s-9-month"] {
		t.Errorf("the names are %v", seen)
	}
}

// TestWithKeyLimits: limits of the run time take the place of an override of the same value, come before networks, and never keep a
// configuration from its effect.
func TestWithKeyLimits(t *testing.T) {
	c := parsedRules(t, `  - {name: a, key: [ip], limits: ["20/1s"], burst: 40, overrides: {192.0.2.1/32: {limits: ["90/1s"]}, 10.0.0.0/8: {limits: ["5/1s"]}}}
  - {name: b, key: [ip], limits: ["5/1m"]}
  - {name: c, key: [ip], in_flight: 3}
`)
	got := c.WithKeyLimits([]KeyLimit{
		{Rule: "a", Value: "192.0.2.1", NewLimits: NewLimits{Limits: []string{"200/1s"}}},
		{Rule: "a", Value: "10.1.2.3/32", Unlimited: true},
		{Rule: "a", Value: "not an address", Unlimited: true},
		{Rule: "b", Value: "192.0.2.1/32", NewLimits: NewLimits{Limits: []string{"7/x"}}},
		{Rule: "c", Value: "192.0.2.1/32", NewLimits: NewLimits{Limits: []string{"7/1s"}}},
		{Rule: "gone", Value: "192.0.2.1/32", Unlimited: true},
	})
	var seen []string
	for i := range got.Rules {
		for _, o := range got.Rules[i].Overrides {
			seen = append(seen, fmt.Sprint(got.Rules[i].Name, " ", o.Value, " ", LimitTexts(o.Policies), " ", o.Unlimited))
		}
	}
	want := "a 192.0.2.1 [200/1s burst 40] false, a 10.0.0.0/8 [5/1s] false, a 10.1.2.3/32 [] true"
	if text := strings.Join(seen, ", "); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	if len(c.Rules[0].Overrides) != 2 || c.Rules[0].Overrides[0].Value != "192.0.2.1/32" || c.WithKeyLimits(nil) != c {
		t.Error("the configuration itself has changed, or is copied without a limit")
	}
}
