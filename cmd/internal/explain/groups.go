package explain

import (
	"fmt"
	"strings"
)

// writePassedOver lists the rules that match, and do not decide because a rule before them in their group does.
func (e *explanation) writePassedOver(b *strings.Builder) {
	for _, p := range e.PassedOver() {
		fmt.Fprintf(b, "\nrule %s\n", p.Rule.Name)
		linef(b, "group", "%s: %s decides in its place, and this rule does not count the request", p.Rule.Group, p.By)
	}
}
