package rule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// modelName is the name of the model in headgate.Body.Fields. Requests that have the model in their path have the field too.
const modelName = "model"

// maxBodyDepth bounds the names of a path into a JSON document.
const maxBodyDepth = 8

// checkBodyPath checks a path into a JSON document: names separated by dots.
func checkBodyPath(path string) fault {
	const fix = "write the names of the JSON members with dots between them, like params.name"
	bad, size := faultyPrintable(path)
	switch {
	case path == "":
		return fault{"has an empty name", fix}
	case size > 0:
		return fault{fmt.Sprintf("has %q in its name", path[bad:bad+size]), fix}
	case len(path) > maxNameLength:
		return fault{fmt.Sprintf("has a name of %d bytes", len(path)), fmt.Sprintf("use at most %d", maxNameLength)}
	case path[0] == '.' || path[len(path)-1] == '.' || strings.Contains(path, ".."):
		return fault{"has an empty name between dots", fix}
	case strings.HasPrefix(path, "$") || strings.ContainsAny(path, "[]*/"):
		return fault{"has a sign of another language", fix}
	case strings.Count(path, ".") >= maxBodyDepth:
		return fault{
			fmt.Sprintf("names a member in more than %d objects", maxBodyDepth-1), fmt.Sprintf("use at most %d names", maxBodyDepth),
		}
	}
	return fault{}
}

// CheckBodyPath checks a path into a JSON document, as match.json and the key part json:FIELD name it. The error is a *ParseError.
func CheckBodyPath(path string) error {
	if f := checkBodyPath(path); f != (fault{}) {
		return &ParseError{Problem: "path " + quote(path) + " " + f.problem, Fix: f.fix}
	}
	return nil
}

// checkBody checks the names in sorted order, as checkHeaders does.
func (c *checker) checkBody(match string, m *Match) {
	if m.Model != "" {
		p, f := compileValue(m.Model)
		c.notePattern(match+".model", p, f)
	}
	for _, name := range slices.Sorted(maps.Keys(m.JSON)) {
		p, f := pattern{}, checkBodyPath(name)
		switch value := m.JSON[name]; {
		case f != (fault{}):
		case name == modelName:
			f = fault{"is the model", "write model: " + value + " in match"}
		case value == "":
			f = fault{"has no value", `write the value, or "*" for any`}
		default:
			p, f = compileValue(value)
			f.fix = strings.Replace(f.fix, "not: {headers: {NAME:", "not: {json: {"+quote(name)+":", 1)
		}
		c.notePattern(match+".json."+name, p, f)
	}
}

// newBodyPatterns converts what a match reads of a body.
func newBodyPatterns(m *Match) []fieldPattern {
	patterns := newFieldPatterns(fieldBody, m.JSON)
	if m.Model != "" {
		patterns = append(patterns, newFieldPatterns(fieldBody, map[string]string{modelName: m.Model})...)
	}
	return patterns
}

// bodyField returns the value of a field of the request's body. An empty value counts as missing.
func bodyField(req *headgate.Request, path string) (value string, present bool) {
	if req.Body == nil {
		return "", false
	}
	return lookup(req.Body.Fields, path)
}

// ReadsBody reports whether the match reads the body of a request, in its own fields or in those that it leaves out.
func (m *Match) ReadsBody() bool {
	return m.Model != "" || len(m.JSON) > 0 || m.Not != nil && m.Not.ReadsBody()
}

// ReadsBody reports whether the rule reads the body of a request: its match, its exempt entries or its key.
func (r *Rule) ReadsBody() bool {
	for m := range r.matches {
		if m.Model != "" || len(m.JSON) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(r.Key, Part.OfBody)
}

// OfBody reports whether the part is model or json:FIELD, which are values of the request's body.
func (p Part) OfBody() bool { return p.kind == partModel || p.kind == partJSON }

// BeforeBody returns the rule without the conditions on the body of a request. An index of such rules finds those that may match before the
// body is known: every request that matches the rule matches BeforeBody too.
func (r *Rule) BeforeBody() Rule {
	early := *r
	early.Match.Model, early.Match.JSON = "", nil
	if early.Match.Not != nil && early.Match.Not.ReadsBody() {
		early.Match.Not = nil // A request may lack the fields that this leaves out.
	}
	early.Exempt = slices.DeleteFunc(slices.Clone(r.Exempt), func(m Match) bool { return m.ReadsBody() })
	return early
}

// bodyPath returns the path of what the part reads of a body; "" for other parts.
func (p Part) bodyPath() string {
	switch p.kind {
	case partModel:
		return modelName
	case partJSON:
		return p.name
	default:
		return ""
	}
}

// addBody adds the paths that a match reads of bodies.
func (r *Reads) addBody(m *Match) {
	if m.Model != "" {
		r.Body = withName(r.Body, modelName)
	}
	for _, name := range slices.Sorted(maps.Keys(m.JSON)) {
		r.Body = withName(r.Body, name)
	}
}
