package guard_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestOperatorAlwaysBans: the ban of an operator also refuses keys that their rule does not refuse by itself, in both instances of a store,
// and ends with Unban. Before and after, decisions on these keys have no result.
func TestOperatorAlwaysBans(t *testing.T) {
	unlimited := []guard.Override{{Value: "a", Unlimited: true}}
	own := guard.Ban{After: perMinute(9), For: time.Hour}
	for name, change := range map[string]func(r *guard.Rule){
		"unlimited":            func(r *guard.Rule) { r.Overrides = unlimited },
		"unlimited with a ban": func(r *guard.Rule) { r.Overrides, r.Ban = unlimited, own },
		"unlimited and bound":  func(r *guard.Rule) { r.Overrides, r.Ban, r.Exceed.Action = unlimited, own, guard.Drop },
		"degrades":             func(r *guard.Rule) { r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Level", Value: "low"} },
		"degrades, and is unlimited": func(r *guard.Rule) {
			r.Overrides, r.Ban, r.Exceed = unlimited, own, guard.Exceed{Action: guard.Degrade, Header: "X-Level"}
		},
		"limited and with its ban":    func(r *guard.Rule) { r.Ban = own },
		"limited beside an unlimited": func(r *guard.Rule) { r.Overrides, r.Ban = []guard.Override{{Value: "b", Unlimited: true}}, own },
	} {
		r := byClient(t, "api", "/p", perMinute(5))
		change(&r)
		c := guard.Config{Rules: []guard.Rule{r}}
		first, clock := newGuard(t, c)
		c.Store = first.Store()
		second, err := guard.New(c)
		if err != nil {
			t.Fatal(err)
		}
		before := len(decide(t, second, request("/p", "a")).Results)
		entry, err := first.Ban(t.Context(), of("api", "a"), time.Hour, "abuse")
		if err != nil || !entry.Operator {
			t.Fatalf("%s: %+v, %v", name, entry, err)
		}
		if err := second.FollowBans(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, g := range []*guard.Guard{first, second} {
			a := decide(t, g, request("/p", "a"))
			if a.Verdict != headgate.Deny || a.Closest().Decision.Reason != headgate.Banned || len(a.Results) > 2 {
				t.Errorf("%s, guard %d: %v, %+v", name, i, a.Verdict, a.Results)
			}
			if a := decide(t, g, request("/p", "other")); a.Verdict != headgate.Allow {
				t.Errorf("%s, guard %d: another key is refused", name, i)
			}
		}
		if bans, _ := second.Bans(clock.Now().Time()); len(bans) != 1 {
			t.Errorf("%s: the bans are %+v", name, bans)
		}
		if was, err := second.Unban(t.Context(), of("api", "a")); err != nil || !was {
			t.Errorf("%s: the end: %v, %v", name, was, err)
		}
		if a := decide(t, first, request("/p", "a")); a.Verdict != headgate.Allow || len(a.Results) != before {
			t.Errorf("%s: afterwards: %v, %+v", name, a.Verdict, a.Results)
		}
	}
}
