package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate"
)

// resolve sets the plan and the lists of every variant.
func (q *Quotas) resolve() error {
	q.nameQuotas()
	q.lacking = make([]int, len(q.names))
	missing := map[string]uint32{}
	for n := range uint32(q.variants.n) {
		if q.variants.at(n).key != (textKey{}) {
			q.resolveOne(n, missing)
		}
	}
	return q.inUse(missing)
}

// resolveSome is resolve for new variants. The plans have not changed.
func (q *Quotas) resolveSome(fresh []uint32) error {
	missing := map[string]uint32{}
	for _, n := range fresh {
		q.resolveOne(n, missing)
	}
	return q.inUse(missing)
}

// resolveOne sets the plan and the lists of a variant, or notes that its plan is missing.
func (q *Quotas) resolveOne(n uint32, missing map[string]uint32) {
	v := q.variants.change(n)
	at, known := q.plan(v.entry.Plan)
	if !known {
		if _, found := missing[v.entry.Plan]; !found {
			missing[v.entry.Plan] = n
		}
		return
	}
	v.plan, v.quotas = at, make([]uint32, len(q.names))
	for i, quota := range q.names {
		if v.quotas[i] = q.list(quota, v); v.quotas[i] == noList && q.plans[at].needsLimits() {
			q.lacking[i]++
		}
	}
}

// keepLists takes the lists of former Quotas with equal plans.
func (q *Quotas) keepLists(former *Quotas) {
	q.names, q.lacking, q.atMost = former.names, slices.Clone(former.lacking), former.atMost
	q.lists, q.listNumbers, q.freeList = former.lists.copied(), former.listNumbers.copied(), former.freeList
}

// endLists ends the uses of lists by a variant. Without lacking, all lists are made anew.
func (q *Quotas) endLists(v *variant) {
	if q.lacking == nil {
		return
	}
	for i, n := range v.quotas {
		if n == noList {
			if q.plans[v.plan].needsLimits() {
				q.lacking[i]--
			}
			continue
		}
		l := q.lists.change(n)
		if l.uses--; l.uses == 0 {
			q.listNumbers.remove(l.key)
			q.atMost -= len(l.limits)
			*l = numberedList{next: q.freeList}
			q.freeList = n + 1
		}
	}
}

// addList gives a list a number.
func (q *Quotas) addList(l *quotaList) uint32 {
	n := q.freeList - 1
	if q.freeList > 0 {
		to := q.lists.change(n)
		q.freeList, *to = to.next, numberedList{quotaList: l}
	} else {
		n = q.lists.add(numberedList{quotaList: l})
	}
	q.listNumbers.set(l.key, n)
	q.atMost += len(l.limits)
	return n
}

// inUse gives the error of missing plans; nil without them.
func (q *Quotas) inUse(missing map[string]uint32) error {
	if len(missing) == 0 {
		return nil
	}
	e := &PlansInUseError{}
	for plan := range missing {
		if plan == "" {
			plan = q.standard
		}
		e.Plans = append(e.Plans, plan)
	}
	slices.Sort(e.Plans)
	e.Plans = slices.Compact(e.Plans)
	if n, found := missing[e.Plans[0]]; found {
		for name, customer := range q.customers.All {
			if customer.Limits == n || customer.Raised == n {
				e.Customer = name
				break
			}
		}
	}
	return e
}

// nameQuotas lists the names of the quotas of all plans. A quota that only a customer has is counted by no rule.
func (q *Quotas) nameQuotas() {
	q.names = nil
	for i := range q.plans {
		for _, l := range q.plans[i].Quotas {
			q.names = append(q.names, l.Quota)
		}
	}
	slices.Sort(q.names)
	q.names = slices.Compact(q.names)
}

// list gives the number of the limits that a variant has of a quota.
func (q *Quotas) list(quota string, v *variant) uint32 {
	plan := &q.plans[v.plan]
	limits := limitsOf(v.entry.Quotas, quota)
	if limits == nil {
		limits = limitsOf(plan.Quotas, quota)
	}
	if limits == nil || !plan.needsLimits() {
		return noList
	}
	l := &quotaList{quota: quota, after: plan.After, limits: spend(limits, v.entry.Spending, quota)}
	text := fmt.Sprintf("%q %d %v", l.quota, l.after, l.limits) + burstsText(l.limits)
	if slices.ContainsFunc(l.limits, func(l QuotaLimit) bool { return l.Policy.Limit.Calendar != headgate.NoCalendar }) {
		if l.calendar = plan.Calendar; v.entry.Calendar != nil {
			l.calendar = *v.entry.Calendar
		}
		text += calendarText(l.calendar)
	}
	l.key = keyOf(text)
	n, known := q.listNumbers.get(l.key)
	if !known {
		n = q.addList(l)
	}
	q.lists.change(n).uses++
	return n
}

func limitsOf(all []QuotaLimits, quota string) []QuotaLimit {
	for i := range all {
		if all[i].Quota == quota {
			return all[i].Limits
		}
	}
	return nil
}

// spend applies a customer's own hard limit.
func spend(limits []QuotaLimit, all []Spending, quota string) []QuotaLimit {
	for _, own := range all {
		if own.Quota != quota {
			continue
		}
		limits = slices.Clone(limits)
		for i := range limits {
			if l := &limits[i]; l.Hard > 0 {
				l.Hard = min(l.Hard, max(own.Hard, l.Policy.Limit.Count))
			}
		}
	}
	return limits
}

// countLimits refuses more different limits than a store can prepare.
func (q *Quotas) countLimits() error {
	if n := q.Limits(MaxQuotaPolicies); n > MaxQuotaPolicies {
		return &TooManyLimitsError{n}
	}
	return nil
}

// Limits gives the number of different limits that all plans and customers have. Up to enough, it may give a greater one,
// which costs less to know.
func (q *Quotas) Limits(enough int) int {
	if q == nil || q.atMost <= enough {
		return q.limitsAtMost()
	}
	different := map[headgate.Policy]struct{}{}
	for n := range uint32(q.lists.n) {
		l := q.lists.at(n).quotaList
		if l == nil {
			continue
		}
		for j := range l.limits {
			different[l.policy(j)] = struct{}{}
		}
	}
	return len(different)
}

func (q *Quotas) limitsAtMost() int {
	if q == nil {
		return 0
	}
	return q.atMost
}

// policy gives the policy under which limit i counts. Included and metered units share one counter, which
// refuses above Hard. terms tells one from the other.
func (l *quotaList) policy(i int) headgate.Policy {
	policy := l.limits[i].Policy
	if l.beyond(i) {
		policy.Limit.Count = l.limits[i].Hard
	}
	return policy
}

// beyond reports whether requests pass above the included units of limit i.
func (l *quotaList) beyond(i int) bool { return l.after != AfterReject && l.limits[i].Hard > 0 }

// checkPlans checks the plans, each on its own.
func (q *Quotas) checkPlans() error {
	for i := range q.plans {
		p := &q.plans[i]
		switch {
		case p.Name == "" || i > 0 && p.Name == q.plans[i-1].Name:
			return fmt.Errorf("guard: plan %q is listed twice, or has no name: give each a name of its own", p.Name)
		case p.Mode > Off || p.After > AfterMeter:
			return fmt.Errorf("guard: plan %q: mode %d or after %d is not known: use the constants", p.Name, p.Mode, p.After)
		case p.Missing && (len(p.Quotas) > 0 || p.Mode != Enforce):
			return fmt.Errorf("guard: plan %q is Missing, and has quotas or a mode: leave these out, or Missing", p.Name)
		case p.After == AfterDegrade && p.Header == "":
			return fmt.Errorf("guard: plan %q: degrade has no header to mark requests with: give it one", p.Name)
		}
		if err := errors.Join(checkHeader(p.Header), checkQuotas(p.Quotas)); err != nil {
			return fmt.Errorf("guard: plan %q: %w", p.Name, err)
		}
	}
	return nil
}

func (c *Customer) check() error {
	if c.Raise != nil {
		if c.Raise.Until <= 0 {
			return fmt.Errorf("guard: customer %q: a raise has no end: give it one", c.Name)
		}
		if err := checkQuotas(c.Raise.Quotas); err != nil {
			return fmt.Errorf("guard: customer %q: %w", c.Name, err)
		}
	}
	if err := checkQuotas(c.Quotas); err != nil {
		return fmt.Errorf("guard: customer %q: %w", c.Name, err)
	}
	for _, s := range c.Spending {
		if s.Hard < 0 || s.Hard > headgate.MaxUnits {
			return fmt.Errorf("guard: customer %q: the hard limit %d of %s is out of range: use 0 to %d", c.Name, s.Hard, s.Quota,
				int64(headgate.MaxUnits))
		}
	}
	return nil
}

func checkQuotas(all []QuotaLimits) error {
	for i := range all {
		l := &all[i]
		again := slices.ContainsFunc(all[:i], func(before QuotaLimits) bool { return before.Quota == l.Quota })
		if again || l.Quota == "" || len(l.Limits) == 0 || len(l.Limits) > maxWindows {
			return fmt.Errorf("quota %q has %d limits, or is listed twice: give it 1 to %d limits", l.Quota, len(l.Limits), maxWindows)
		}
		for j := range l.Limits {
			if err := l.Limits[j].check(l.Limits[:j]); err != nil {
				return fmt.Errorf("quota %q: %w", l.Quota, err)
			}
		}
	}
	return nil
}

func (l *QuotaLimit) check(before []QuotaLimit) error {
	p := &l.Policy
	switch {
	case slices.ContainsFunc(before, func(b QuotaLimit) bool { return b.Policy.Limit.Period() == p.Limit.Period() }):
		return fmt.Errorf("the period %s appears twice: remove one of the limits", p.Limit.Period())
	case p.Algorithm == headgate.LeakyBucket || p.Algorithm == headgate.Ban:
		return fmt.Errorf("%s is not possible: use another algorithm", p.Algorithm)
	case p.MaxWait != 0 || p.Hold != 0 || p.Batch != 0 || p.CountRejected || p.CountAll || p.BanFor != 0 || p.Named:
		return fmt.Errorf("limit %s has settings of a rule: leave out MaxWait, Hold, Batch and CountRejected", p.Limit)
	case l.Soft < 0 || l.Soft > 99:
		return fmt.Errorf("its soft limit is %d percent: use 1 to 99", l.Soft)
	case l.Hard == 0:
		return nil
	case p.Algorithm != headgate.FixedWindow:
		return fmt.Errorf("%s has no hard limit: use fixed_window", p.Algorithm)
	case l.Hard < max(1, p.Limit.Count) || l.Hard > headgate.MaxUnits:
		return fmt.Errorf("its hard limit of %d is below the limit %s, or out of range: raise it", l.Hard, p.Limit)
	default:
		return nil
	}
}
