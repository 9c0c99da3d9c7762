package check

import (
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Outcomes finds rules whose units cannot be returned or charged at the end of a request, and slots that
// the store cannot count.
func Outcomes(rules []guard.Rule, memcached bool, blamed Blamed) []Finding {
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
