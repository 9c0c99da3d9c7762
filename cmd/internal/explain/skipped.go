package explain

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// writeSkipped names the rules that match and do not apply, because the request lacks a part of their key.
func (e *explanation) writeSkipped(b *strings.Builder) {
	seen := e.seen()
	for i := range e.config.Rules {
		r := &e.config.Rules[i]
		if r.Missing != rule.MissingSkip || r.Mode == guard.Off {
			continue
		}
		match := r.Match
		match.Path = e.config.Folds.Pattern(match.Path)
		if part, lacks := r.Lacks(seen); lacks && fits(r, match, seen) {
			fmt.Fprintf(b, "\nrule %s does not apply: the request has no %s, and missing is skip\n", r.Name, r.Key[part])
		}
	}
}
