package check

import (
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
)

// Outcomes finds rules whose units cannot be returned or charged at the end of a request, and slots that
// the store cannot count. quota gives the limits of a quota. fit is nil for a store in memory.
func Outcomes(rules []guard.Rule, quota func(string) []headgate.Policy, memcached bool, fit Fit, blamed Blamed) []Finding {
	found := &findings{known: blamed}
	for i := range rules {
		r, path := &rules[i], fmt.Sprintf("rules[%d].", i)
		if r.InFlight > 0 && memcached {
			found.add(path+"in_flight", "Memcached cannot count requests in flight: it frees nothing after a crash",
				"use a Redis store, or leave in_flight out")
		}
		setting := "settle"
		switch {
		case len(r.Count) > 0:
			setting = "count"
		case r.Announced:
			setting = "cost"
		case !r.Settles():
			continue
		}
		if problem, fix := unreturnable(r); problem != "" && !found.blamed(path+setting) {
			found.add(path+setting, problem, fix)
		} else if r.Settles() && !found.blamed(path+setting) {
			found.charges(path+setting, limitsOf(r, quota), fit)
		}
	}
	return found.all
}

// unreturnable says why the units of a rule cannot be returned.
func unreturnable(r *guard.Rule) (problem, fix string) {
	switch {
	case r.Quota != "":
		return "", "" // Its limits have no departures, and a rule with a quota has no ban.
	case len(r.Policies) == 0 && r.BansAnswers() && r.Settle == "":
		return "", "" // The ban counts.
	case len(r.Policies) == 0:
		return "has no effect without limits", "write limits: [\"5/m\"], or remove it"
	case r.Policies[0].Algorithm == headgate.LeakyBucket:
		return "leaky_bucket schedules departures, which cannot be returned", "use another algorithm"
	case r.Exceed.Action == guard.Delay:
		return "delay schedules departures, which cannot be returned", "use another action"
	case r.Exceed.Action == guard.Degrade && r.Exceed.Hard.Algorithm == headgate.LeakyBucket:
		return "the hard limit schedules departures, which cannot be returned", "use another algorithm"
	default:
		return "", ""
	}
}

// limitsOf gives all limits that a rule can count.
func limitsOf(r *guard.Rule, quota func(string) []headgate.Policy) [][]headgate.Policy {
	if r.Quota != "" {
		return [][]headgate.Policy{quota(r.Quota)}
	}
	lists := [][]headgate.Policy{r.Policies}
	for i := range r.Overrides {
		lists = append(lists, r.Overrides[i].Policies)
	}
	lists = append(lists, r.StatedAtMost()...)
	return lists
}

// charges finds limits of which the store cannot count twice as many units: settle charges up to one limit
// beyond the limit.
func (f *findings) charges(path string, lists [][]headgate.Policy, fit Fit) {
	for _, list := range lists {
		for _, p := range list {
			if p.Limit.Count > headgate.MaxUnits/2 || limit.Room(p) > headgate.MaxUnits/2 {
				f.add(path, fmt.Sprintf("charges up to twice %s, more than can be counted", p.Limit), "lower the limit")
				return
			}
			if fit == nil || fit(p) != nil {
				continue
			}
			if bad, unfit := errortype.As[*limit.PolicyError](fit(guard.SettlePolicy(p))); unfit {
				f.add(path, fmt.Sprintf("charges up to twice %s, and that %s %s", p.Limit, bad.Field, bad.Problem),
					"use half the limit that the store can count")
				return
			}
		}
	}
}
