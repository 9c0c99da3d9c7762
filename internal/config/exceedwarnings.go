package config

import (
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// ExceedWarnings tells which rules describe an answer that their clients do not get when they are over the limit. Such rules are valid:
// refusals for other reasons have the answer.
func (c *Config) ExceedWarnings() []string {
	const rest = ": remove style, body, body_file, content_type and headers, or "
	var warnings []string
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Exceed.Response == nil || r.Mode == guard.Off {
			continue
		}
		text := "rule " + r.Name + ": on_exceed describes an answer, and action "
		switch {
		case r.Exceed.Action == guard.Drop:
			warnings = append(warnings, text+"drop sends none: only refusals with status 503 have it"+rest+"use action: reject")
		case r.Exceed.Action == guard.Degrade && !r.Exceed.Hard.Limit.HasPeriod() && r.Ban.For == 0 && r.InFlight == 0 &&
			r.Missing != rule.MissingRefuse && r.Quota == "":
			warnings = append(warnings, text+"degrade refuses nothing without hard"+rest+"write hard")
		}
	}
	return warnings
}
