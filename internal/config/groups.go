package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// group reads the group of a rule.
func (s *section) group(r *guard.Rule) {
	s.declare("group", field.Taken, "Makes rules alternatives: of the rules with one group that match a request, the first in the file "+
		"decides. The others neither count nor refuse it.")
	s.outline.field("group").text("", "^[A-Za-z0-9_.-]+$", 1, 64)
	if v, ok := s.textOf("group", &r.Group); ok && (r.Group == "" || guard.CheckNamespace(r.Group) != nil) {
		s.fault(v, quote(v.text())+" is no name of a group", "use 1 to 64 letters, digits, - _ and .")
		r.Group = ""
	}
}

// writeGroups says for each group which of its rules decides. Writing to a strings.Builder never fails.
func (c *Config) writeGroups(b *strings.Builder) {
	written := map[string]bool{"": true}
	for i := range c.Rules {
		if name := c.Rules[i].Group; !written[name] {
			written[name] = true
			c.writeGroup(b, name)
		}
	}
}

func (c *Config) writeGroup(b *strings.Builder, name string) {
	fmt.Fprintf(b, "\ngroup %s: the first rule that matches a request decides, and the others do not count it\n", name)
	var enforced []string
	for i := range c.Rules {
		r := &c.Rules[i]
		switch {
		case r.Group != name:
		case r.Mode == guard.Off:
			fmt.Fprintf(b, "  %s: off, and takes no part\n", r.Name)
		case r.Mode == guard.Shadow:
			fmt.Fprintf(b, "  %s: reports what it would decide on requests that it matches%s; the rules below decide them too\n",
				r.Name, leftBy(enforced))
		default:
			lacking := ""
			if r.Missing == rule.MissingSkip && slices.ContainsFunc(r.Key, rule.Part.Optional) {
				lacking = "; without a part of its key, the rules below decide"
			}
			fmt.Fprintf(b, "  %s: decides requests that it matches%s%s\n", r.Name, leftBy(enforced), lacking)
			enforced = append(enforced, r.Name)
		}
	}
}

// leftBy says which requests enforced rules leave to a rule after them.
func leftBy(enforced []string) string {
	const few = 3
	switch n := len(enforced); {
	case n == 0:
		return ""
	case n == 1:
		return " and " + enforced[0] + " does not"
	case n <= few:
		return " and " + strings.Join(enforced[:n-1], ", ") + " and " + enforced[n-1] + " do not"
	default:
		return fmt.Sprintf(" and the %d enforced rules above do not", n)
	}
}
