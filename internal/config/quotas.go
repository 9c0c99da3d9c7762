package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

// quotaReading reads the plans and the customers, after the rules.
type quotaReading struct {
	root *section
	// counted has, by quota, the index of the first rule that counts it. faulty is set if a rule may count
	// a quota that is not known because of a fault.
	counted map[string]int
	faulty  bool
	// local is set by quota if a rule of it has fallback local.
	local map[string]bool
	// parts are the different parts by which rules find customers.
	parts []rule.Part
	// algorithms has the first algorithm for a quota and a period, and where it is written.
	algorithms map[quotaPeriod]firstAlgorithm
	// numbers has the first period for a quota and a guard.LimitNumber, and where it is written.
	numbers map[quotaNumber]firstPeriod
	// used are the limits that were read, for Objects. holder finds the path of one that another object has.
	used []limitUse
	// added are those of used that are the first with their quota and period.
	added    []limitUse
	holder   func(quotaPeriod) string
	interned interned
	// hards counts the limits with hard.
	hards int
	// policies are the different limits.
	policies map[headgate.Policy]struct{}
}

type firstAlgorithm struct {
	algorithm headgate.Algorithm
	path      string
}

type firstPeriod struct{ period, path string }

// quotaPeriod is a quota and the period of a limit.
type quotaPeriod struct{ quota, period string }

// quotaNumber is a quota and the number under which stores keep a limit.
type quotaNumber struct {
	quota  string
	number uint8
}

// limitUse is what a limit of a quota has that all others with its quota and period must have too.
type limitUse struct {
	at        quotaPeriod
	algorithm headgate.Algorithm
	number    uint8
}

// quotas reads the plans, the default plan and the customers, and checks them against the rules.
func (s *section) quotas(c *Config) {
	q := &quotaReading{
		root: s, counted: map[string]int{}, local: map[string]bool{}, algorithms: map[quotaPeriod]firstAlgorithm{},
		interned: newInterned(),
		policies: map[headgate.Policy]struct{}{}, numbers: map[quotaNumber]firstPeriod{},
	}
	s.quotaFacts = q
	q.noteRules(c)
	q.plans(c)
	q.standard(c)
	q.customers(c)
	q.check(c)
	s.checkOutcomes(c)
}

// noteRules notes which quotas the rules count.
func (q *quotaReading) noteRules(c *Config) {
	q.faulty = q.root.blamed("rules")
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Quota == "" {
			continue
		}
		if _, known := q.counted[r.Quota]; !known {
			q.counted[r.Quota] = i
		}
		q.local[r.Quota] = q.local[r.Quota] || r.Fallback == guard.FallbackLocal
		if len(r.Key) == 1 && !slices.Contains(q.parts, r.Key[0]) {
			q.parts = append(q.parts, r.Key[0])
		}
	}
}

// noteCounted notes a quota that no rule counts. With a source, a plan may have one: a rule needs plans with its quota, so the plans are
// written first.
func (q *quotaReading) noteCounted(quotas *section, name string) {
	if _, counted := q.counted[name]; counted || q.faulty || quotas.deferred || quotas.outline != nil {
		return
	}
	if quotas.sourced && check.Within(quotas.self.path, plansName) {
		return
	}
	names := make([]string, 0, len(q.counted))
	for known := range q.counted {
		names = append(names, known)
	}
	slices.Sort(names)
	fix := "write quota: " + name + " in a rule, or remove it"
	if near := rule.Nearest(name, names); near != "" {
		fix = "did you mean " + near + "?"
	}
	quotas.fault(quotas.nameOf(name), "no rule counts the quota "+quote(name), fix)
}

// standard reads the default plan.
func (q *quotaReading) standard(c *Config) {
	s := q.root
	s.text(s.declare(defaultPlanName, field.Taken, "Plan of customers without an entry. Required if a rule has a quota."), &c.DefaultPlan)
	v, given := s.given(defaultPlanName)
	switch {
	case s.blamedAny(defaultPlanName):
	case !given && len(q.counted) > 0:
		fix := "write the plan of customers without an entry, like default_plan: free"
		if len(c.Plans) > 0 {
			fix = "write the plan of customers without an entry, like default_plan: " + c.Plans[0].Name
		}
		s.missing(defaultPlanName, fix)
	case given:
		q.checkPlan(s, v, c.DefaultPlan, c)
	}
}

// checkPlan gives the plan with a name; nil with a fault.
func (q *quotaReading) checkPlan(s *section, v value, name string, c *Config) *guard.Plan {
	for i := range c.Plans {
		if c.Plans[i].Name == name {
			return &c.Plans[i]
		}
	}
	if s.deferred {
		return nil
	}
	names := make([]string, len(c.Plans))
	for i := range c.Plans {
		names[i] = c.Plans[i].Name
	}
	if s.blamed(plansName) && !s.blamedAt(plansName+"."+name) && len(names) == 0 {
		return nil
	}
	fix := "write it in plans, or use one of " + strings.Join(names[:min(len(names), 10)], ", ")
	if len(names) == 0 {
		fix = "write it in plans"
	}
	if near := rule.Nearest(name, names); near != "" {
		fix = "did you mean " + near + "?"
	}
	s.fault(v, "plan "+quote(name)+" does not exist", fix)
	return nil
}

// checkLimit checks a limit of a quota on its own, and against the other limits with its period.
func (q *quotaReading) checkLimit(s *section, v value, l *guard.QuotaLimit, quota string, after guard.After) {
	p := l.Policy
	if l.Hard > 0 {
		q.hards++
		switch {
		case p.Algorithm != headgate.FixedWindow:
			s.fault(s.keyOf("hard"), "is not used by "+p.Algorithm.String(), "remove it, or use fixed_window")
		case after == guard.AfterReject:
			s.fault(s.keyOf("hard"), "has no effect in a plan with after: reject",
				"remove it, or use after: meter or after: degrade in the plan")
		case l.Hard < p.Limit.Count:
			s.fault(s.find(s.pathOf("hard")), fmt.Sprintf("%d is less than the included units of %s", l.Hard, p.Limit),
				fmt.Sprintf("use at least %d", p.Limit.Count))
		}
		p.Limit.Count = l.Hard
	}
	if l.Soft > 0 && l.Policy.Limit.Count == 0 {
		s.fault(s.keyOf("soft"), "has no effect with "+l.Policy.Limit.String()+", which includes no units", "remove it")
	}
	if s.blamed(s.self.path) {
		return
	}
	if _, err := limit.Compile(p); err != nil {
		s.policyFault(v, err)
		return
	}
	q.policies[p] = struct{}{}
	q.checkStore(s, v, p, quota)
	at := quotaPeriod{quota, p.Limit.Period()}
	use := limitUse{at, p.Algorithm, guard.LimitNumber(p.Limit)}
	q.used = append(q.used, use)
	first, known := q.algorithms[at]
	switch {
	case !known:
		q.added = append(q.added, use)
		q.algorithms[at] = firstAlgorithm{p.Algorithm, s.self.path}
		q.checkNumber(s, v, p.Limit, quota)
	case first.algorithm != p.Algorithm:
		first.path = q.pathOf(first.path, at)
		s.fault(v, fmt.Sprintf("counts %s in %s by %s, but %s counts by %s: a customer that changes between them would lose what it used",
			quota, p.Limit.Period(), p.Algorithm, first.path, first.algorithm), "use one algorithm for a quota and period")
	}
}

// pathOf gives the path of a limit, which another object may have.
func (q *quotaReading) pathOf(path string, at quotaPeriod) string {
	if path == "" && q.holder != nil {
		return q.holder(at)
	}
	return path
}

// forget removes limits that were added.
func (q *quotaReading) forget(added []limitUse) {
	for _, use := range added {
		delete(q.algorithms, use.at)
		if at := (quotaNumber{use.at.quota, use.number}); q.numbers[at].period == use.at.period {
			delete(q.numbers, at)
		}
	}
}

// checkStore checks a limit against the store, and this instance's part of it.
func (q *quotaReading) checkStore(s *section, v value, p headgate.Policy, quota string) {
	if fit := s.counting.fit; fit != nil {
		if err := fit(p); err != nil {
			s.policyFault(v, err)
			return
		}
	}
	if share := s.counting.localShare; share > 0 && s.counting.shared != nil && q.local[quota] {
		one := func(yield func(check.Limit) bool) { yield(check.Limit{Policy: p, Path: v.path}) }
		for _, f := range check.Local(&guard.Rule{Fallback: guard.FallbackLocal}, share, one) {
			s.fault(v, f.Problem, f.Fix)
		}
	}
}

// quotasUseBlocks reports whether a limit of a quota uses a log or a sliding window.
func (c *Config) quotasUseBlocks() bool {
	use := func(all []guard.QuotaLimits) bool {
		for i := range all {
			for j := range all[i].Limits {
				if check.UsesBlocks(all[i].Limits[j].Policy.Algorithm) {
					return true
				}
			}
		}
		return false
	}
	for i := range c.Plans {
		if use(c.Plans[i].Quotas) {
			return true
		}
	}
	for i := range c.Customers {
		customer := &c.Customers[i]
		if use(customer.Quotas) || customer.Raise != nil && use(customer.Raise.Quotas) {
			return true
		}
	}
	return false
}
