package explain

import (
	"fmt"
	"strings"
)

// writeSkipped names the rules that match and do not apply, because the request lacks a part of their key.
func (e *explanation) writeSkipped(b *strings.Builder) {
	for _, s := range e.Skipped() {
		fmt.Fprintf(b, "\nrule %s does not apply: the request has no %s, and missing is skip\n", s.Rule.Name, s.Part)
	}
}
