package rule

import (
	"cmp"
	"strings"

	"github.com/headgate/headgate"
)

// field is what a request can be asked for by name: a header or a descriptor
// entry. The zero field is none.
type field struct {
	kind fieldKind
	name string // exactly as it is looked up; of a header, in canonical spelling
}

// fieldKind says which of a request's values a field is among.
type fieldKind uint8

const (
	fieldNone fieldKind = iota
	fieldHeader
	fieldDescriptor
)

func (f field) compare(g field) int {
	return cmp.Or(cmp.Compare(f.kind, g.kind), strings.Compare(f.name, g.name))
}

// lookup gives the field's value in a request; what is empty is not there.
func (f field) lookup(req *headgate.Request) (value string, present bool) {
	if f.kind == fieldDescriptor {
		return descriptor(req, f.name)
	}
	return lookup(req.Header, f.name)
}

// fieldPattern is a field with one value or, with any set, with any value.
type fieldPattern struct {
	field

	value string
	any   bool
}

// newFieldPatterns reads one map of a match.
func newFieldPatterns(kind fieldKind, values map[string]string) []fieldPattern {
	patterns := make([]fieldPattern, 0, len(values))
	for name, value := range values {
		if kind == fieldHeader {
			name = canonicalHeader(name)
		}
		patterns = append(patterns, fieldPattern{field{kind, name}, value, value == "*"})
	}
	return patterns
}

func (p *fieldPattern) match(req *headgate.Request) bool {
	value, present := p.lookup(req)
	return present && (p.any || value == p.value)
}
