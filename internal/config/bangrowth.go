package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

// Defaults of a ban that grows. The longest ban is at least manyBans times as long as the first one.
const (
	defaultLongestBan = 24 * time.Hour
	manyBans          = 8
	defaultForget     = 7 * 24 * time.Hour
)

const withoutGrowthFix = "write growth: 2, or remove it"

// growth reads how the bans of one key grow.
func (s *section) growth(r *guard.Rule) {
	s.number(s.declare("growth", field.Taken, "Makes each further ban of a key that many times as long. It needs count. Default: all bans "+
		"are as long as for."), &r.Ban.Growth, 2, guard.MostGrowth)
	s.duration(s.declare("most", field.Taken, "Longest ban, with growth. Default: 1d, or 8 times for if that is longer."),
		&r.Ban.Most, leastBan, limit.MaxPer)
	s.outline.field("most").dependent()
	s.duration(s.declare("forget", field.Taken, "Time after the end of a ban from which the next one is as long as for again, with "+
		"growth. Default: 7d."), &r.Ban.Forget, leastBan, limit.MaxPer)
	s.outline.field("forget").dependent()
}

// checkGrowth adds the defaults of a ban that grows, and rejects a growth without an effect.
func (s *section) checkGrowth(r *guard.Rule) {
	ban := &r.Ban
	for _, name := range [...]string{"growth", "most", "forget", "for", "after"} {
		if s.blamed(s.pathOf(name)) {
			return
		}
	}
	where, grows := s.given("growth")
	if !grows {
		for _, name := range [...]string{"most", "forget"} {
			if v, ok := s.given(name); ok {
				s.fault(v, "has no effect without growth", withoutGrowthFix)
			}
		}
		return
	}
	if len(r.Count) == 0 {
		s.fault(where, "is for bans by answers: a ban by attempts begins in a decision, before its length could be looked up",
			"write count: {status: [401, 403]} in the rule, or remove growth")
		return
	}
	after := check.BanPolicy(r, r.Policies).Limit.Per
	room := limit.MaxPer - after
	if ban.Forget == 0 {
		ban.Forget = defaultForget
	}
	if ban.Most == 0 {
		ban.Most = min(max(defaultLongestBan, ban.For*manyBans), room-ban.Forget)
	}
	switch most, _ := s.given("most"); {
	case ban.Most <= ban.For:
		if most.node == nil {
			most = where
		}
		s.fault(most, fmt.Sprintf("no ban is longer than the first one, of %s", field.FormatDuration(ban.For)),
			"write a longer most or a shorter for, or remove growth")
	case ban.Most > room-ban.Forget:
		forget, _ := s.given("forget")
		if forget.node == nil {
			forget = most
		}
		s.fault(forget, fmt.Sprintf("a ban would be remembered for more than %s: the sum of after's time, most and forget",
			field.FormatDuration(limit.MaxPer)), "write a shorter most or forget")
	}
}

// GrowthText lists the lengths of the bans of a key in words; "" for a ban that does not grow.
func GrowthText(ban *guard.Ban) string {
	if ban.Growth == 0 {
		return ""
	}
	const shown = 3
	lengths := ban.Lengths()
	last := len(lengths) - 1
	var further []string
	for _, length := range lengths[1:max(min(last, shown), 1)] {
		further = append(further, field.FormatDuration(length))
	}
	text := field.FormatDuration(lengths[0])
	if len(further) > 0 {
		text += ", then " + strings.Join(further, ", ")
	}
	if last > shown {
		text += " …"
	}
	return fmt.Sprintf("%s, at most %s; forgotten %s after the last ban", text, field.FormatDuration(lengths[last]),
		field.FormatDuration(ban.Forget))
}
