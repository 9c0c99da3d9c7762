package rule

import (
	"cmp"
	"strings"

	"github.com/headgate/headgate"
)

// field is a header, a value of the query, a descriptor entry or a value of a JSON body, looked up by name. The zero field means no
// field.
type field struct {
	kind fieldKind
	name string // the name to look up; in canonical spelling for a header
}

// fieldKind says what a field is.
type fieldKind uint8

const (
	fieldNone fieldKind = iota
	fieldHeader
	fieldQuery
	fieldDescriptor
	fieldBody
)

func (f field) compare(g field) int {
	return cmp.Or(cmp.Compare(f.kind, g.kind), strings.Compare(f.name, g.name))
}

// lookup returns the value of the field. An empty value counts as missing.
func (f field) lookup(req *headgate.Request) (value string, present bool) {
	switch f.kind {
	case fieldDescriptor:
		return descriptor(req, f.name)
	case fieldBody:
		return bodyField(req, f.name)
	case fieldQuery:
		return lookup(req.Query, f.name)
	default:
		return lookup(req.Header, f.name)
	}
}

// fieldPattern is a field with one value, with any value if any is set, or with a value of the pattern.
type fieldPattern struct {
	field

	value   string
	any     bool
	pattern *pattern
}

// newFieldPatterns converts one map of a match.
func newFieldPatterns(kind fieldKind, values map[string]string) []fieldPattern {
	patterns := make([]fieldPattern, 0, len(values))
	for name, value := range values {
		if kind == fieldHeader {
			name = canonicalHeader(name)
		}
		compiled := fieldPattern{field: field{kind, name}}
		switch p, _ := compileValue(value); p.form {
		case formLiteral:
			compiled.value = p.text
		case formAny:
			compiled.any = true
		default:
			compiled.pattern = &p
		}
		patterns = append(patterns, compiled)
	}
	return patterns
}

func (p *fieldPattern) match(req *headgate.Request) bool {
	value, present := p.lookup(req)
	if p.pattern != nil {
		return present && p.pattern.match(value)
	}
	return present && (p.any || value == p.value)
}
