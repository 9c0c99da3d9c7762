package config

import (
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
)

// ExemptWarnings tells which rules never decide anything, because the exempt of the top level leaves out every request of their match.
// Such a configuration is valid: an entry of exempt can switch rules off for a while. Each text names three rules.
func (c *Config) ExemptWarnings() (notes []string) {
	entries := make([]named, len(c.Exempt))
	check.Exempted(c.Rules, c.Exempt, func(r *guard.Rule, entry int) { entries[entry].add(r.Name) })
	for i := range entries {
		if entries[i].count > 0 {
			notes = append(notes, fmt.Sprintf("rule %s: never decides anything: exempt[%d] leaves out every request of the match: narrow "+
				"exempt, or remove the rule", entries[i].String(), i))
		}
	}
	return notes
}
