package config

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/limit"
)

// leastBan is the shortest ban: a shorter one ends before its Retry-After.
const leastBan = time.Second

// ban reads the section ban of a rule. all are the limits of the rule, and of each override.
func (s *section) ban(r *guard.Rule, all []limits) {
	b := s.sub(s.declare("ban", field.Taken, "For how long a key is refused that makes too many attempts."),
		`{after: "2500/20m", for: 1h}`)
	if b.self.node == nil {
		return
	}
	b.required("for", "write how long a ban lasts, like for: 1h")
	b.duration(b.declare("for", field.Taken, "How long the ban lasts beyond that time; 1s to 367d."), &r.Ban.For, leastBan, limit.MaxPer)
	b.declare("after", field.Taken, "How many attempts are too many, in a time that begins with the key's first. Without it, the "+
		"rule's first limit.")
	b.outline.field("after").written("", limitPattern)
	v, ok := b.scalar("after", "a limit")
	b.end()
	switch {
	case ok:
		l := b.oneLimit(v, headgate.Policy{Algorithm: headgate.Ban, BanFor: leastBan})
		if len(l.policies) > 0 {
			r.Ban.After = l.policies[0].Limit
			b.checkAfter(v, r, all)
		}
	case len(all[0].policies) > 0 && all[0].policies[0].Limit.Count == 0 && !b.blamed(b.pathOf("after")):
		s.fault(b.self, fmt.Sprintf("means nothing for %s, which admits nothing", all[0].policies[0].Limit),
			"leave it out, or raise the limit")
	}
}

// checkAfter rejects a ban that would hit clients that keep to a limit of the rule.
func (s *section) checkAfter(v value, r *guard.Rule, all []limits) {
	after := r.Ban.After
	if after.Count == 0 {
		s.fault(v, fmt.Sprintf("%s bans everybody at once", after), "write how many attempts go too far, like 2500/20m")
		return
	}
	for _, l := range all {
		for i, p := range l.policies {
			if after.Per < p.Limit.Per {
				continue // Several bursts of a longer limit can be too many for a ban.
			}
			if most := max(limit.Room(p), p.Limit.Count) / max(r.Cost, 1); after.Count < most {
				s.fault(v, fmt.Sprintf("%s bans whoever keeps to %s, which is %s", after, p.Limit, l.values[i].path),
					fmt.Sprintf("use at least %s", headgate.Limit{Count: most, Per: after.Per}))
				return
			}
		}
	}
}
