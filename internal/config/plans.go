package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

const (
	plansName       = "plans"
	customersName   = "customers"
	defaultPlanName = "default_plan"
	// maxPlans bounds the plans of one file, and maxQuotas the quotas of one plan or customer.
	maxPlans  = 1000
	maxQuotas = 64

	planExample   = `{quotas: {api_calls: [{limit: 200/30d}]}}`
	quotasExample = `{api_calls: [{limit: 200/30d}]}`
)

// plans reads the plans.
func (q *quotaReading) plans(c *Config) {
	s := q.root
	all := s.sub(s.declare(plansName, field.Taken, "Quotas that many customers share, by the names of plans."), "{free: "+planExample+"}")
	all.settable = false // Variables cannot set the fields of a plan.
	each := all.outline.each(maxPlans)
	if n := len(all.names); n > maxPlans {
		s.fault(s.keyOf(plansName), fmt.Sprintf("has %d plans", n), fmt.Sprintf("use at most %d", maxPlans))
		return
	}
	for _, name := range all.names {
		v, ok := all.valueOf(name)
		if s.full || !ok {
			continue
		}
		all.checkWord(name)
		one := s.section(v, "write it like "+planExample)
		one.outline = each
		if one.self.node == nil {
			continue
		}
		c.Plans = append(c.Plans, q.plan(one, name))
	}
}

// plan reads one plan.
func (q *quotaReading) plan(s *section, name string) guard.Plan {
	p := guard.Plan{Name: name}
	oneOf(s, s.declare("mode", field.Taken, "enforce refuses requests; shadow only reports decisions; off counts nothing."), &p.Mode,
		choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}))
	oneOf(s, s.declare("after", field.Taken, "What follows the included units of a limit with hard: reject refuses requests; degrade lets "+
		"them pass with a header, up to hard; meter lets them pass as metered units, up to hard."), &p.After,
		choicesOf(guard.Afters()))
	known := !s.blamedAny("after")
	for _, name := range [...]string{"header", "value"} {
		s.record(name)
		s.outline.restrict(name, "after", guard.AfterDegrade.String())
		if s.has(name) && known && p.After != guard.AfterDegrade {
			s.fault(s.keyOf(name), "is only valid with after: degrade", "remove it, or use after: degrade")
		}
	}
	if known && p.After == guard.AfterDegrade || s.outline != nil {
		var x guard.Exceed
		s.outline.under("after", guard.AfterDegrade.String())
		s.mark(&x)
		s.outline.under("", "")
		p.Header, p.Value = x.Header, x.Value
	}
	q.planCalendar(s, &p)
	hard := q.hards
	s.declare("quotas", field.Taken, "Limits of each quota that rules count. A request must pass all limits of a quota.")
	if p.Quotas = q.limitsOf(s, "quotas", p.After); p.Mode != guard.Off && !s.blamedAny("quotas") && len(p.Quotas) == 0 {
		s.missing("quotas", "write the limits of each quota, like quotas: "+quotasExample)
	}
	if known && p.After != guard.AfterReject && q.hards == hard && !s.blamedAny("quotas", "after") {
		s.fault(s.keyOf("after"), p.After.String()+" has no effect, because no limit has hard",
			"write hard beside a limit, like hard: 1000")
	}
	q.checkPlanCalendar(s, &p)
	s.end()
	return p
}

// planCalendar reads where the calendar windows of a plan begin.
func (*quotaReading) planCalendar(s *section, p *guard.Plan) {
	p.Calendar = calendar.Default()
	s.calendarFields(&p.Calendar)
}

// checkPlanCalendar rejects settings that no limit of the plan uses.
func (*quotaReading) checkPlanCalendar(s *section, p *guard.Plan) {
	r := guard.Rule{Calendar: p.Calendar}
	all := limits{policies: policiesOf(p.Quotas)}
	r.Policies = all.policies
	s.checkCalendar(&r, []limits{all})
}

// checkWord checks the name of a plan or a quota.
func (s *section) checkWord(name string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	const most = 64
	if name == "" || len(name) > most || strings.Trim(name, letters) != "" || strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune(letters, c)
	}) {
		s.fault(s.nameOf(name), "the name "+quote(name)+" is not valid", "use 1 to 64 letters, digits, - and _")
	}
}

// limitsOf reads a mapping of quotas to their limits.
func (q *quotaReading) limitsOf(s *section, name string, after guard.After) []guard.QuotaLimits {
	quotas := s.sub(name, quotasExample)
	entry := quotas.outline.each(maxQuotas)
	if n := len(quotas.names); n > maxQuotas {
		s.fault(s.keyOf(name), fmt.Sprintf("has %d quotas", n), fmt.Sprintf("use at most %d", maxQuotas))
		return nil
	}
	if entry != nil {
		q.limitList(&section{reader: s.reader, outline: &outline{fields: map[string]*outline{"": entry}}}, "", after)
		return nil
	}
	all := make([]guard.QuotaLimits, 0, len(quotas.names))
	for _, name := range quotas.names {
		quotas.checkWord(name)
		q.noteCounted(quotas, name)
		if limits := q.limitList(quotas, name, after); len(limits) > 0 {
			all = append(all, guard.QuotaLimits{Quota: name, Limits: limits})
		}
	}
	return all
}

// limitList reads the limits of one quota.
func (q *quotaReading) limitList(quotas *section, name string, after guard.After) []guard.QuotaLimit {
	entries, _ := quotas.list(name, "[{limit: 200/30d}]", 1, maxLimits)
	if o := quotas.outline.field(name); o != nil {
		one := &section{reader: quotas.reader, outline: o.entries(), fields: map[string]keyValue{}}
		_, _, _ = q.limit(one, name, after)
		return nil
	}
	var all []guard.QuotaLimit
	var read limits
	for _, v := range entries {
		if v.node == nil || quotas.full {
			continue
		}
		one := quotas.section(v, "write it like {limit: 200/30d}")
		if one.self.node == nil {
			continue
		}
		if l, v, ok := q.limit(one, name, after); ok {
			all = append(all, l)
			read.policies, read.values = append(read.policies, l.Policy), append(read.values, v)
		}
	}
	quotas.checkPeriods(read)
	return q.interned.limits(all)
}

// checkPeriods finds two limits of one quota with one period.
func (s *section) checkPeriods(l limits) {
	for i, p := range l.policies {
		for _, other := range l.policies[:i] {
			if p.Limit.Period() == other.Limit.Period() {
				s.fault(l.values[i], fmt.Sprintf("the period %s appears twice", p.Limit.Period()), "remove the higher limit")
			}
		}
	}
}

// limit reads one limit of a quota.
func (q *quotaReading) limit(s *section, quota string, after guard.After) (l guard.QuotaLimit, v value, ok bool) {
	l.Policy.Algorithm = headgate.FixedWindow
	s.required("limit", "write the included units per time, like limit: 200/30d")
	s.outline.field(s.declare("limit", field.Taken, "Included units per time, like 200/30d.")).written("", limitPattern)
	v, given := s.scalar("limit", "units per time")
	given = given && s.limit(v, &l.Policy.Limit)
	known := q.algorithm(s, &l.Policy.Algorithm)
	subWindows := int64(defaultSubWindows)
	s.number(s.declare("sub_windows", field.Taken, "Counters for one period of a sliding window."), &subWindows, 1, limit.MaxSubWindows)
	if l.Policy.Algorithm == headgate.SlidingWindow {
		l.Policy.SubWindows = int(subWindows)
	}
	s.number(s.declare("burst", field.Taken, "Units that may pass at once. Default: the limit's count."), &l.Policy.Limit.Burst,
		1, headgate.MaxUnits)
	s.percent(s.declare("soft", field.Taken, "Percentage of the included units, 1% to 99%, above which a request passes with a warning."),
		&l.Soft, 1, mostSoft)
	s.number(s.declare("hard", field.Taken, "Units in a period above which requests are refused. Only for fixed_window, in a plan with "+
		"after: degrade or meter. Default: the limit's count."), &l.Hard, 1, headgate.MaxUnits)
	if known {
		s.checkUsed(l.Policy.Algorithm, "sub_windows")
		s.outline.restrict("burst", "algorithm", headgate.TokenBucket.String())
		if s.has("burst") && l.Policy.Algorithm != headgate.TokenBucket {
			s.fault(s.keyOf("burst"), "is not used by "+l.Policy.Algorithm.String(), "remove it, or use token_bucket")
		}
	}
	s.end()
	if !given || !known || s.blamedAny("burst", "sub_windows", "hard", "limit") {
		return l, v, false
	}
	q.checkLimit(s, v, &l, quota, after)
	return l, v, !s.blamed(s.self.path)
}

// algorithm reads the algorithm of a limit of a quota.
func (*quotaReading) algorithm(s *section, into *headgate.Algorithm) bool {
	choices := algorithmChoices(headgate.Algorithms())
	for i := range choices {
		if one := &choices[i]; one.word == headgate.LeakyBucket.String() {
			one.why, one.instead = "leaky_bucket lets requests wait, and a quota does not", "use token_bucket"
		}
	}
	oneOf(s, s.declare("algorithm", field.Taken, "Algorithm that counts the units."), into, choices)
	return !s.blamedAny("algorithm")
}
