package config

import "github.com/headgate/headgate/guard"

// limitFieldNames are the fields of a rule that say how its limits count.
var limitFieldNames = [...]string{
	"algorithm", "sub_windows", "count_rejected", "burst", "cost", "max_cost", "soft", "prefetch", "overdraft",
}

const (
	withoutLimits    = "has no effect without limits"
	withoutLimitsFix = `write limits: ["5/m"], or remove it`
)

// limitless reports whether the rule only bounds the requests in flight, or only bans: it has no limits.
func (s *section) limitless() bool {
	bans := s.has("ban") && !s.has("quota") && !s.has(leaseName)
	return (s.has("in_flight") || bans) && !s.has("limits") && !s.merged
}

// checkLimitless notes the fields of a rule that need limits, if the rule has none. e is its
// section on_exceed. The limits of overrides use most of these fields too.
func (s *section) checkLimitless(r *guard.Rule, e *section) {
	if !s.limitless() {
		return
	}
	for _, name := range limitFieldNames {
		if s.has(name) && s.limitsLack(r, name) && !s.blamed(s.pathOf(name)) {
			s.fault(s.keyOf(name), withoutLimits, withoutLimitsFix)
		}
	}
	action := r.Exceed.Action
	if (action == guard.Delay || action == guard.Degrade) && len(r.Overrides) == 0 && !s.blamed(e.pathOf("action")) {
		s.fault(s.find(e.pathOf("action")), action.String()+" "+withoutLimits, `write limits: ["5/m"], or use action: reject`)
	}
}

// limitsLack reports whether a field has no effect on a rule without limits. Each override has its own burst,
// and a ban counts the cost of attempts.
func (s *section) limitsLack(r *guard.Rule, name string) bool {
	switch name {
	case "burst":
		return true
	case "cost", "max_cost":
		return len(r.Overrides) == 0 && r.Ban.For == 0
	default:
		return len(r.Overrides) == 0
	}
}
