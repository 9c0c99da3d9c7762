package guard

import (
	"errors"
	"strings"

	"github.com/headgate/headgate"
)

// meter has Config.Meter count the decisions of rules with a quota, each rule once.
func (s *set) meter(a *Answer) {
	if errors.Is(a.StoreError, ErrCallerGone) {
		return // The request is not made, and whether the store has counted it is unknown.
	}
	for from := 0; from < len(a.Results); {
		to := a.endOfRule(from)
		if r := &a.Results[from]; r.inQuota() {
			if u, decided := a.usage(a.Results[from:to]); decided {
				u.At = a.timeOfUsage(s)
				r.counted, r.others = u.Admitted > 0, s.config.Meter.Count(u)
			}
		}
		from = to
	}
}

// inQuota reports whether the limit belongs to a quota.
func (r *Result) inQuota() bool {
	return r.window != nil && r.window.quota.ofQuota && r.op != opDecided
}

// endOfRule gives the end of the results of the rule of result from. They are neighbours.
func (a *Answer) endOfRule(from int) int {
	to := from + 1
	for to < len(a.Results) && a.Results[to].from == a.Results[from].from && a.Results[from].from != nil {
		to++
	}
	return to
}

// usage gives what the results of one rule say. It reports false if the rule has decided nothing that counts: a Peek, or a request that
// another rule refuses, whose units the quota has not counted.
func (a *Answer) usage(results []Result) (u headgate.Usage, decided bool) {
	r := &results[0]
	u = headgate.Usage{Customer: r.key[r.nameAt:], Quota: r.from.Quota, Shadow: !r.Enforced()}
	if r.cost <= 0 || r.mode == headgate.Peek {
		return u, false
	}
	if r.mode == headgate.Refund {
		if fellBack(results) {
			return u, false // The store has given nothing back.
		}
		u.Admitted, u.Metered = -mostRefunded(results), -mostGivenBack(results)
		return u, u.Admitted != 0 // No Correction: its decision is unknown, and it has its own minute.
	}
	for i := range results {
		if d := &results[i]; d.Decision.Verdict == headgate.Deny {
			u.Refused = r.cost
			return u, !d.Fallback || d.Rule.Fallback != FallbackError // Its client decides, and the meter does not know how.
		}
	}
	u.Admitted, u.Metered = r.cost, mostMetered(results)
	return u, a.Verdict != headgate.Deny || !r.Enforced() || a.from.independent
}

// fellBack reports whether a rule was decided without its store.
func fellBack(results []Result) bool {
	for i := range results {
		if results[i].Fallback {
			return true
		}
	}
	return false
}

// mostMetered gives the metered units of one rule, as Metered does: the highest number of its limits.
func mostMetered(results []Result) (most int64) {
	for i := range results {
		if r := &results[i]; r.Decision.Reason == headgate.Metered {
			most = max(most, r.Beyond)
		}
	}
	return most
}

// refunded gives the units that came back. Only a fixed window says how many; other algorithms may have had fewer.
func (r *Result) refunded() int64 {
	if r.window.algorithm == headgate.FixedWindow {
		return r.Decision.Receipt.Cost
	}
	return r.cost
}

// mostRefunded gives the units that came back to the limits of one rule. If there are fixed windows, theirs count: bills follow them.
func mostRefunded(results []Result) (most int64) {
	fixed := false
	for i := range results {
		r := &results[i]
		if isFixed := r.window.algorithm == headgate.FixedWindow; isFixed && !fixed {
			most, fixed = r.refunded(), true
		} else if isFixed == fixed {
			most = max(most, r.refunded())
		}
	}
	return most
}

// mostGivenBack is mostMetered for a Refund.
func mostGivenBack(results []Result) (most int64) {
	for i := range results {
		if r := &results[i]; r.window.quota.beyond && r.window.quota.after == AfterMeter && !r.Fallback {
			most = max(most, r.givenBack)
		}
	}
	return most
}

// timeOfUsage gives the time of the decision: the store's, or this instance's without a decision of the store.
func (a *Answer) timeOfUsage(s *set) headgate.Instant {
	a.countedAt = 0
	for i := range a.Results {
		if r := &a.Results[i]; r.inQuota() && r.Decision.At != 0 {
			a.countedAt = r.Decision.At
			return a.countedAt
		}
	}
	a.countedAt = s.guard.calendarNow()
	return a.countedAt
}

// uncount has Config.Meter take back what it has counted for a request that is not made. A second call does nothing.
func (a *Answer) uncount() {
	for from := 0; from < len(a.Results); {
		to := a.endOfRule(from)
		if r := &a.Results[from]; r.counted {
			r.counted = false
			u := a.correction(a.Results[from:to])
			a.from.takeBack(&u)
		}
		from = to
	}
}

// correction gives the change that takes back what a rule has counted.
func (a *Answer) correction(results []Result) headgate.Usage {
	r := &results[0]
	return headgate.Usage{
		Customer: r.key[r.nameAt:], Quota: r.from.Quota, At: a.countedAt, Admitted: -r.cost, Metered: -mostMetered(results),
		Shadow: !r.Enforced(), Correction: true, Others: r.others,
	}
}

// corrections gives the changes of uncount for later, with names of their own. uncount then does nothing.
func (a *Answer) corrections() (all []headgate.Usage) {
	for from := 0; from < len(a.Results); {
		to := a.endOfRule(from)
		if r := &a.Results[from]; r.counted {
			r.counted = false
			u := a.correction(a.Results[from:to])
			u.Customer = strings.Clone(u.Customer)
			all = append(all, u)
		}
		from = to
	}
	return all
}

// countsUsage reports whether Config.Meter has counted the request as admitted.
func (a *Answer) countsUsage() bool {
	for i := range a.Results {
		if a.Results[i].counted {
			return true
		}
	}
	return false
}
