package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// notOfQuotasTable has the fields that a rule with a quota does not have, and where they belong.
var notOfQuotasTable = [...]struct{ name, problem, fix string }{
	{"limits", "the quota has its limits in plans", "move them to plans.PLAN.quotas"},
	{"limits_from", "a rule with a quota has its limits in plans and customers", "move them to customers"},
	{"overrides", "a rule with a quota has none: single customers have entries in customers", "move them to customers"},
	{"algorithm", "each limit of a quota has its own algorithm", "move it to the limits in plans"},
	{"sub_windows", "each limit of a quota has its own sub_windows", "move it to the limits in plans"},
	{"burst", "each limit of a quota has its own burst", "move it to the limits in plans"},
	{"soft", "each limit of a quota has its own soft", "move it to the limits in plans"},
	{"count_rejected", "a quota does not count refused attempts", "remove it"},
	{"prefetch", "the units of a quota are not prefetched", "remove it"},
	{"ban", "a quota has no ban", "write it in another rule with the same match"},
	{"in_flight", "a quota has no bound of requests in flight", "write it in another rule with the same match"},
	{"in_flight_ttl", "a quota has no bound of requests in flight", "write it in another rule with the same match"},
}

// quota reads the quota that a rule counts.
func (s *section) quota(r *guard.Rule) {
	name := s.declare("quota", field.Taken, "Quota that the rule counts, in place of limits of its own. plans and customers have "+
		"its limits.")
	s.outline.field(name).text("", callerPattern, 1, 0)
	v, ok := s.textOf(name, &r.Quota)
	if !ok {
		return
	}
	if strings.ContainsFunc(r.Quota, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	}) || r.Quota == "" || len(r.Quota) > 64 {
		s.fault(v, quote(r.Quota)+" is not valid", "use 1 to 64 letters, digits, - and _")
	}
	for i := range notOfQuotasTable {
		other := &notOfQuotasTable[i]
		if s.has(other.name) {
			s.fault(s.keyOf(other.name), other.problem, other.fix)
		}
	}
	switch {
	case s.blamedAny("key") || len(r.Key) == 0:
	case len(r.Key) > 1:
		s.fault(s.keyOf("key"), fmt.Sprintf("has %d parts, and a quota counts by customer", len(r.Key)),
			"use the part that names the customer")
	case r.Key[0].String() == "all":
		s.fault(s.keyOf("key"), "all is one customer, and a quota needs several",
			"use the part that names the customer, like header:X-Customer")
	}
}

// quotaAction notes an action that the plan has in place of the rule.
func (s *section) quotaAction(r *guard.Rule, e *section) {
	if r.Quota == "" || e.blamedAny("action") {
		return
	}
	switch r.Exceed.Action {
	case guard.Degrade:
		s.fault(s.find(e.pathOf("action")), "the plan says what follows the included units", "write after: degrade in the plan")
	case guard.Delay:
		s.fault(s.find(e.pathOf("action")), "a quota does not let requests wait", "use reject or redirect")
	default:
	}
}

// check checks the plans and customers against the rules.
func (q *quotaReading) check(c *Config) {
	q.checkCounted(c)
	q.checkNames(c)
	q.checkHeaders(c)
	q.checkPolicies(c)
	q.checkCapacity(c)
	q.checkCosts(c)
}

// checkCounted finds quotas of rules that a plan lacks.
func (q *quotaReading) checkCounted(c *Config) {
	s := q.root
	if s.blamed(plansName) {
		return
	}
	var names []string
	for i := range c.Plans {
		for _, l := range c.Plans[i].Quotas {
			names = append(names, l.Quota)
		}
	}
	for i := range c.Rules {
		quota := c.Rules[i].Quota
		if quota == "" || q.counted[quota] != i {
			continue
		}
		if !slices.Contains(names, quota) && s.deferred {
			continue
		}
		if !slices.Contains(names, quota) {
			fix := "write its limits in plans"
			if near := rule.Nearest(quota, names); near != "" {
				fix = "did you mean " + near + "?"
			}
			s.fault(s.find(fmt.Sprintf("rules[%d].quota", i)), "no plan has the quota "+quote(quota), fix)
			continue
		}
		for j := range c.Plans {
			if p := &c.Plans[j]; p.Mode != guard.Off && quotaOf(p.Quotas, quota) == nil {
				s.fault(s.find(plansName+"."+p.Name+".quotas"), fmt.Sprintf("has no limits of %s, which rules[%d] counts", quota, i),
					"add them, or use mode: off for a plan without limits")
			}
		}
	}
}

// checkNames finds rules with the names of quotas: callers see both as policies.
func (q *quotaReading) checkNames(c *Config) {
	for i := range c.Rules {
		name := c.Rules[i].Name
		for quota := range q.counted {
			if name == quota || strings.HasPrefix(name, quota+"-") && q.isLimitName(name, quota) {
				q.root.fault(q.root.find(fmt.Sprintf("rules[%d].name", i)),
					fmt.Sprintf("callers see the quota %s under the name %q", quota, name),
					"use another name")
			}
		}
	}
}

func (q *quotaReading) isLimitName(name, quota string) bool {
	for p := range q.policies {
		if name == quota+"-"+p.Limit.Period() {
			return true
		}
	}
	return false
}

// checkHeaders finds headers of plans that rules read from requests.
func (q *quotaReading) checkHeaders(c *Config) {
	all := slices.Clone(c.Rules)
	for i := range c.Plans {
		all = append(all, guard.Rule{Exceed: guard.Exceed{Header: c.Plans[i].Header}})
	}
	for _, f := range check.DecisionHeaders(all, c.Identity.UserIPHeaders) {
		for i := range c.Plans {
			if f.Path == fmt.Sprintf("rules[%d].on_exceed.header", len(c.Rules)+i) {
				q.root.fault(q.root.find(plansName+"."+c.Plans[i].Name+".header"), f.Problem, f.Fix)
			}
		}
	}
}

// checkNumber finds two periods of one quota under one number: a plan with both moves one of them to
// another number.
func (q *quotaReading) checkNumber(s *section, v value, l headgate.Limit, quota string) {
	at := quotaNumber{quota, guard.LimitNumber(l)}
	first, known := q.numbers[at]
	if !known {
		q.numbers[at] = firstPeriod{l.Period(), s.self.path}
		return
	}
	first.path = q.pathOf(first.path, quotaPeriod{quota, first.period})
	s.fault(v, fmt.Sprintf("the period %s has the same number in stores as %s of %s: a customer that changes between plans with one "+
		"and both would lose what it used", l.Period(), first.period, first.path), "use another period, such as one a second longer")
}

// checkPolicies finds more different limits than a store can have.
func (q *quotaReading) checkPolicies(c *Config) {
	for i := range c.Rules {
		for _, set := range check.Sets(&c.Rules[i]) {
			for _, p := range check.Counted(&c.Rules[i], set) {
				q.policies[p] = struct{}{}
			}
		}
	}
	if n := len(q.policies); n > check.MaxPolicies && !q.root.blamed("rules") {
		q.root.fault(q.root.keyOf(customersName), fmt.Sprintf("the rules, plans and customers have %d different limits", n),
			fmt.Sprintf("give more customers the same limits: at most %d are possible, because a reload keeps those of two configurations",
				check.MaxPolicies))
	}
}

// checkCapacity finds limits of which fewer than check.LeastKeys keys fit in memory.
func (q *quotaReading) checkCapacity(c *Config) {
	if q.root.blamed("max_memory") {
		return
	}
	for i := range c.Plans {
		for _, l := range c.Plans[i].Quotas {
			r := guard.Rule{Fallback: guard.FallbackDeny}
			if q.local[l.Quota] {
				r.Fallback = guard.FallbackLocal
			}
			for j := range l.Limits {
				r.Policies = append(r.Policies, l.Limits[j].Policy)
			}
			for _, f := range check.Capacity([]guard.Rule{r}, nil, c.memory(), q.root.blamed) {
				q.root.fault(q.root.find(plansName+"."+c.Plans[i].Name+".quotas."+l.Quota), f.Problem, f.Fix)
			}
		}
	}
}

// checkCosts finds costs that a plan's limit never admits.
func (q *quotaReading) checkCosts(c *Config) {
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Quota == "" || r.Cost < 2 || q.root.blamed(fmt.Sprintf("rules[%d].cost", i)) {
			continue
		}
		for j := range c.Plans {
			if least, shown := mostAtOnce(quotaOf(c.Plans[j].Quotas, r.Quota)); least > 0 && r.Cost > least {
				q.root.fault(q.root.find(fmt.Sprintf("rules[%d].cost", i)),
					fmt.Sprintf("%d is more than plan %s ever admits at once: %s", r.Cost, c.Plans[j].Name, shown),
					"lower the cost, or raise the limit")
				break
			}
		}
	}
}
