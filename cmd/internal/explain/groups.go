package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
)

// writePassedOver lists the rules that match, and do not decide because a rule before them in their group does.
func (e *explanation) writePassedOver(b *strings.Builder) {
	decided := map[string]string{} // the enforced rule of a group, or else that in shadow
	deciding := e.exchange.Answer.Matched()
	for _, r := range deciding {
		if r.Group != "" && (decided[r.Group] == "" || r.Mode == guard.Enforce) {
			decided[r.Group] = r.Name
		}
	}
	if len(decided) == 0 {
		return
	}
	seen := e.seen()
	for i := range e.config.Rules {
		r := &e.config.Rules[i]
		by := decided[r.Group]
		if by == "" || r.Mode == guard.Off || slices.ContainsFunc(deciding, func(one *guard.Rule) bool { return one.Name == r.Name }) {
			continue
		}
		match := r.Match
		match.Path = e.config.Folds.Pattern(match.Path)
		if fits(r, match, seen) {
			fmt.Fprintf(b, "\nrule %s\n", r.Name)
			linef(b, "group", "%s: %s decides in its place, and this rule does not count the request", r.Group, by)
		}
	}
}
