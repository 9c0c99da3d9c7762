package trial

import (
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
)

// counts are decisions of a rule since the start, by their effect.
type counts struct{ decided, refused, otherwise uint64 }

// countsOf adds up the decisions of a rule. A request that degrades is over the limits of its rule.
func countsOf(r *report.RuleCounts) (c counts) {
	for _, n := range r.Counts {
		c.decided += n.N
		switch n.Reason {
		case headgate.OverLimit, headgate.Never, headgate.QueueFull, headgate.WaitTooLong, headgate.TooManyWaiters:
			if n.Verdict == headgate.Deny {
				c.refused += n.N
			}
		case headgate.Degraded:
			c.refused += n.N
		default:
			if n.Verdict == headgate.Deny {
				c.otherwise += n.N
			}
		}
	}
	return c
}

// since gives the decisions after an earlier count. A rule that was removed and added again begins anew.
func (c counts) since(earlier counts) counts {
	if c.decided < earlier.decided || c.refused < earlier.refused || c.otherwise < earlier.otherwise {
		return c
	}
	return counts{c.decided - earlier.decided, c.refused - earlier.refused, c.otherwise - earlier.otherwise}
}

func (c counts) document(limits []string, seconds float64) admin.TrialCounts {
	d := admin.TrialCounts{Limits: limits, Decided: c.decided, Refused: c.refused, Otherwise: c.otherwise}
	if c.decided > 0 {
		d.Part = float64(c.refused) / float64(c.decided)
	}
	if seconds > 0 {
		d.RefusedRate, d.DecidedRate = float64(c.refused)/seconds, float64(c.decided)/seconds
	}
	return d
}

// list gives the trials that have not ended, by their names.
func (c *Component) list(now time.Time) []admin.Trial {
	all := c.set.Current()
	if len(all) == 0 {
		return nil
	}
	counted := map[string]*report.RuleCounts{}
	rules := c.report.Rules()
	for i := range rules {
		counted[rules[i].Rule.Name] = &rules[i]
	}
	shown := make([]admin.Trial, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := all[name]
		shown = append(shown, c.document(name, &one, counted, now))
	}
	return shown
}

// document gives a trial with its figures.
func (c *Component) document(name string, t *trial, counted map[string]*report.RuleCounts, now time.Time) admin.Trial {
	limits := t.newLimits()
	d := admin.Trial{
		Name: name, Rule: t.rule, Limits: limits.Limits, Since: t.since.UTC(), Until: t.until.UTC(), By: t.by, Reason: t.reason,
		Seconds: max(0, now.Sub(t.since).Seconds()),
	}
	c.mu.Lock()
	began := c.began[name]
	c.mu.Unlock()
	if own := counted[t.rule]; own == nil {
		d.Paused = "no rule of the configuration has the name " + t.rule
	} else {
		d.LeavesOut, d.Notes = config.TrialLeavesOut(own.Rule), notes(own.Rule)
		d.Present = countsOf(own).since(began).document(config.LimitTexts(own.Rule.Policies), d.Seconds)
		if _, err := config.CheckTrial(own.Rule, &limits); err != nil {
			d.Paused = err.Error()
		}
	}
	if tried := counted[name]; tried != nil && tried.Rule.TrialOf == t.rule {
		d.Tried = countsOf(tried).document(config.LimitTexts(tried.Rule.Policies), d.Seconds)
	} else if d.Paused == "" {
		d.Paused = "another rule of the configuration has the name " + name
	}
	return d
}

// notes say what the figures of a trial do not show.
func notes(r *guard.Rule) []string {
	all := []string{
		"clients adapt to refusals: with other limits, they would send other requests",
		"requests that fair share refuses reach neither the rule nor its trial",
		"the trial began without used units, and counts requests that other rules refuse",
	}
	if len(r.Count) > 0 || r.Settle != "" || r.Bytes != 0 {
		all = append(all, "the cost of a request that the rule refuses is the estimate: the service has not answered it")
	}
	return all
}
