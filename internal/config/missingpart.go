package config

import (
	"slices"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// missingPart reads what happens to a request that lacks a part of the key.
func (s *section) missingPart(r *guard.Rule) {
	oneOf(s, s.declare("missing", field.Taken, "Requests that lack a part of the key: shared counts them together; skip does not apply "+
		"the rule to them; refuse answers 400 and names the part."), &r.Missing, choicesOf(rule.Missings()))
	where, given := s.given("missing")
	if given && len(r.Key) > 0 && r.Missing != rule.MissingShared && !slices.ContainsFunc(r.Key, rule.Part.Optional) {
		s.fault(where, "has no effect, because every request has each part of the key", "remove it")
	}
}
