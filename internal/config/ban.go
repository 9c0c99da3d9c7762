package config

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

// leastBan is the shortest ban: a shorter one ends before its Retry-After.
const leastBan = time.Second

// ban reads the section ban of a rule. all are the limits of the rule, and of each override.
func (s *section) ban(r *guard.Rule, all []limits) {
	b := s.sub(s.declare("ban", field.Taken, "Refuses a key for some time after too many attempts, or with count after so many of these "+
		"answers."),
		`{after: "2500/20m", for: 1h}`)
	if b.self.node == nil {
		return
	}
	b.required("for", "write how long a ban lasts, like for: 1h")
	b.duration(b.declare("for", field.Taken, "Length of the ban after the time in after; 1s to 367d."), &r.Ban.For, leastBan, limit.MaxPer)
	b.declare("after", field.Taken, "Attempts that cause a ban, like 2500/20m. The time begins with the key's first attempt. With count: "+
		"answers with these statuses. Default: the rule's first limit.")
	b.outline.field("after").written("", limitPattern)
	v, ok := b.scalar("after", "a limit")
	b.growth(r)
	b.end()
	defer b.checkGrowth(r)
	switch {
	case ok:
		l := b.oneLimit(v, headgate.Policy{Algorithm: headgate.Ban, BanFor: leastBan})
		if len(l.policies) > 0 {
			r.Ban.After = l.policies[0].Limit
			b.checkAfter(v, r, all)
		}
	case s.limitless() && !b.blamed(b.pathOf("after")):
		s.fault(b.self, "counts by the rule's first limit, and there is none", "write after: 2500/20m in it, or give the rule limits")
	case len(all[0].policies) > 0 && all[0].policies[0].Limit.Calendar != headgate.NoCalendar && !b.blamed(b.pathOf("after")):
		s.fault(b.self, fmt.Sprintf("counts by %s, and a ban needs a period with a length", all[0].policies[0].Limit),
			"write after: 2500/20m in it")
	case len(all[0].policies) > 0 && all[0].policies[0].Limit.Count == 0 && !b.blamed(b.pathOf("after")):
		s.fault(b.self, fmt.Sprintf("has no effect with %s, which allows no request", all[0].policies[0].Limit),
			"remove it, or raise the limit")
	}
}

// checkAfter rejects a ban that would hit clients that keep to a limit of the rule.
func (s *section) checkAfter(v value, r *guard.Rule, all []limits) {
	after := r.Ban.After
	if after.Count == 0 {
		s.fault(v, fmt.Sprintf("%s bans every client at its first request", after), "write how many attempts cause a ban, like 2500/20m")
		return
	}
	if r.BansAnswers() {
		s.checkAnswers(v, r, all)
		return
	}
	for _, l := range all {
		for i, p := range l.policies {
			if after.Per < p.Limit.Length() {
				continue // Several bursts of a longer limit can be too many for a ban.
			}
			if most := max(limit.Room(p), p.Limit.Count) / max(r.Cost, 1); after.Count < most {
				s.fault(v, fmt.Sprintf("%s bans clients that keep to %s (%s)", after, p.Limit, l.values[i].path),
					fmt.Sprintf("use at least %s", headgate.Limit{Count: most, Per: after.Per}))
				return
			}
		}
	}
}

// checkAnswers rejects a ban by answers that never begins, because a limit of the rule refuses requests before.
func (s *section) checkAnswers(v value, r *guard.Rule, all []limits) {
	after := r.Ban.After
	if r.Exceed.Action == guard.Degrade {
		return // Its limits let requests pass.
	}
	for _, l := range all {
		if i, most := strictest(l.policies, after.Per); i >= 0 && most < after.Count {
			s.fault(v, fmt.Sprintf("%s never bans: %s (%s) lets at most %d answers count in %s", after, l.policies[i].Limit,
				l.values[i].path, most, after.Period()), fmt.Sprintf("use at most %s, or raise the limit",
				headgate.Limit{Count: max(most, 1), Per: after.Per}))
			return
		}
	}
}
