package guard

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// addQuota adds the Results and the Ops of a rule with a quota, if its mode for the customer's plan is mode. It
// reports whether it has added any.
//
// A request counts once under a quota and customer: the first matching rule in the order of the
// file counts it, and an enforced rule before one in shadow. Two rules for overlapping paths therefore charge no
// request twice.
func (s *set) addQuota(p *prepared, req *headgate.Request, a *Answer, mode Mode) (added bool, err error) {
	if p.Mode != mode && (mode == Enforce || !a.shadowPlan) {
		return false, nil
	}
	from := len(a.keys)
	key, name, shared := s.customerKey(p, req, a)
	n, plan := s.quotas.find(key[name:], s.guard)
	r := p.effects[plan]
	if r.Mode != mode || a.counts(key) {
		a.shadowPlan = a.shadowPlan || r.Mode == Shadow
		a.keys = a.keys[:from]
		return false, nil
	}
	if s.quotas.plans[plan].Missing {
		s.addMissing(p, r, a, key, name, shared)
		return true, nil
	}
	if shared && p.Missing == rule.MissingRefuse {
		s.addLacking(p, r, req, a, key, name)
		return true, nil
	}
	windows := s.quotas.prepared.at(s.quotas.variants.at(n).quotas[p.quota]).windows
	cost, err := p.costOf(req)
	if err != nil && mode == Enforce {
		return false, err
	}
	cost = p.cut(req, windows, cost)
	first := len(a.Results)
	s.addWindows(p, r, windows, req, a, key, cost, shared)
	for i := first; i < len(a.Results); i++ {
		a.Results[i].nameAt = name
	}
	a.soft = true
	if a.ends == nil && p.NeedsEnd() != "" {
		a.ends = p
	}
	return true, nil
}

// counts reports whether an earlier rule counts the request under the key of a quota.
func (a *Answer) counts(key string) bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.window.quota.ofQuota && r.op != opNone && r.key == key {
			return true
		}
	}
	return false
}

// find gives the number of a customer's variant, and of its plan.
func (q *quotaSet) find(name string, g *Guard) (n uint32, plan int) {
	c, _ := q.customers.By(name) // Without an entry, the number is 0, which is the default.
	if n = c.Limits; c.Until != 0 {
		n = c.At(g.calendarNow())
	}
	return n, q.variants.at(n).plan
}

// charge reads from the store's decision how many units of the request are beyond the included units, and whether it is above
// the soft limit. It shows the caller the included units as the limit.
//
// The store counts up to the hard limit H, and decides at one time. Allow with Remaining R says that U = H - R units are used,
// this request's cost C included. So the request has the units U-C+1 to U of the counter, and those above the included
// I are beyond: min(C, max(0, U - I)). Each unit of the counter has one number, so the requests of a window together
// have max(0, used - I) units beyond, in whatever order they come. Units that are given back do not
// change what earlier answers said: later requests then have fewer units beyond. The decision on a Peek has the numbers of a Take, which
// only an explanation shows.
func (r *Result) charge(explained bool) {
	d, q := &r.Decision, &r.window.quota
	switch {
	case d.Verdict == headgate.Deny && (d.Reason == headgate.OverLimit || d.Reason == headgate.Never):
		r.showIncluded()
		return
	case d.Verdict != headgate.Allow || d.Reason != headgate.WithinLimit:
		return
	}
	if over, passes := r.showIncluded(); passes {
		r.Beyond = min(r.cost, max(0, over))
		if r.mode == headgate.Refund { // By the numbers that its units had.
			units := r.refunded()
			r.givenBack = min(units, max(0, over+units))
		}
	}
	r.AboveSoft = q.soft > 0 && overSoft(d, int(q.soft))
	switch {
	case r.mode == headgate.Refund || r.mode == headgate.Peek && !explained: // They take no units.
		r.Beyond, r.AboveSoft = 0, false
	case r.Beyond > 0 && q.after == AfterMeter:
		d.Reason = headgate.Metered
	case r.Beyond > 0:
		d.Reason = headgate.Degraded
	case r.AboveSoft:
		d.Reason = headgate.SoftLimit
	}
}

// Hard gives the number of units of a quota above which requests are refused, and what follows the included units until then.
// It is 0 if the included units are all, and for rules without a quota.
func (r *Result) Hard() (int64, After) {
	if r.window == nil {
		return 0, AfterReject
	}
	return r.window.quota.hard, r.window.quota.after
}

// showIncluded replaces the hard limit in the decision by the included units, of which Remaining is what is left. over is the
// number of used units beyond them, or negative. passes is false if the limit has no hard.
func (r *Result) showIncluded() (over int64, passes bool) {
	d, q := &r.Decision, &r.window.quota
	if !q.beyond {
		return 0, false
	}
	included := q.included
	if r.Fallback {
		included = q.includedPart
	}
	used := d.Limit - d.Remaining
	d.Limit, d.Remaining = included, max(0, included-used)
	return used - included, true
}

// Metered gives the number of the request's units that are beyond the included units of its customer's plan. It is 0 for
// a refusal. If several limits of a quota meter, it is the highest of their numbers. If the request counts
// under several quotas, the numbers are added. Rules in shadow do not count.
func (a *Answer) Metered() int64 {
	var sum, most int64
	var last *Rule
	for i := range a.Results {
		r := &a.Results[i]
		if a.Verdict == headgate.Deny || r.Decision.Reason != headgate.Metered || !r.Enforced() {
			continue
		}
		if r.Rule != last {
			sum, most, last = sum+most, 0, r.Rule
		}
		most = max(most, r.Beyond)
	}
	return sum + most
}
