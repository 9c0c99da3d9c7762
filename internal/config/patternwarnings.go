package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// PatternWarnings tells which patterns of rules cost more than others, and which mean another thing in Go's ServeMux. Such rules are
// valid. Each text names three rules.
func (c *Config) PatternWarnings() (notes []string) {
	var slashed, expressions named
	count, size := 0, 0
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Mode == guard.Off {
			continue
		}
		if path := r.Match.Path; strings.HasPrefix(path, "/") && strings.HasSuffix(path, "/") && !c.Folds.TrailingSlash {
			slashed.add(r.Name)
		}
		if n, instructions := r.Match.Expressions(); n > 0 && writesExpression(&r.Match) {
			count, size = count+n, size+instructions
			expressions.add(r.Name)
		}
	}
	if slashed.count > 0 {
		notes = append(notes, "rule "+slashed.String()+": a path that ends in / is only this path, and none below it as in Go's ServeMux: "+
			"write /files/* for /files and all paths below it, or /files/{$} if only /files/ is meant")
	}
	if count > 0 {
		notes = append(notes, fmt.Sprintf("rule %s: regular expressions (%d in all) take up to %d steps for each byte that they compare. "+
			"Those of paths are compared with every request: a template like /users/{id:[0-9]+} is found by an index", expressions.String(),
			count, size))
	}
	return notes
}

// writesExpression reports whether a text of a match is an expression as a whole. Those in a template are found by an index.
func writesExpression(m *rule.Match) bool {
	texts := slices.Concat([]string{m.Path, m.Domain, m.Model}, m.Methods, m.Hosts)
	for _, values := range []map[string]string{m.Headers, m.Query, m.Descriptors, m.JSON} {
		texts = slices.AppendSeq(texts, maps.Values(values))
	}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, "re:") })
}

// named collects the names of rules for one text.
type named struct {
	names []string
	count int
}

func (n *named) add(name string) {
	if n.count++; n.count <= mostNames {
		n.names = append(n.names, quote(name))
	}
}

func (n *named) String() string {
	text := strings.Join(n.names, ", ")
	if n.count > mostNames {
		text += fmt.Sprintf(" and %d more", n.count-mostNames)
	}
	return text
}
