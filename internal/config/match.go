package config

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// match reads which requests the rule applies to.
func (s *section) match(m *rule.Match, reads bodies) {
	match := s.sub("match", "{path: /v1/product}")
	match.wholeMatch(m, reads)
	match.end()
}

// exemptMatches reads the list exempt of a rule or of the top level.
func (s *section) exemptMatches(into *[]rule.Match, reads bodies) {
	entries, _ := s.list("exempt", "[{path: /healthz}]", 1, rule.MaxExempt)
	all := make([]rule.Match, len(entries))
	for i, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like {path: /healthz}")
		one.outline = s.outline.field("exempt").entries()
		one.wholeMatch(&all[i], reads)
		one.end()
	}
	if len(all) > 0 {
		*into = all
	}
}

// wholeMatch reads the fields of a match, and what it leaves out.
func (s *section) wholeMatch(m *rule.Match, reads bodies) {
	s.matchFields(m)
	s.bodyFields(m, reads)
	not := s.sub(s.declare("not", field.Taken, "Requests that are left out: those to which all of its fields apply. It has the same "+
		"fields, "+
		"but no not."), "{path: /healthz}")
	not.settable = false // A variable sets one value, and an exclusion has several.
	if not.begun() {
		m.Not = new(rule.Match)
	}
	left := m.Not
	if left == nil {
		left = new(rule.Match) // For the schema.
	}
	not.matchFields(left)
	not.bodyFields(left, reads)
	not.end()
}

// matchFields reads the fields of a match without not.
func (s *section) matchFields(m *rule.Match) {
	s.declare("path", field.Taken, "An exact path, or a prefix: /search/* matches /search and all paths below it.")
	s.outline.field("path").text("", pathPattern, 0, 0)
	v, hasPath := s.textOf("path", &m.Path)
	if hasPath {
		s.checkPathLetters(v)
	}
	m.Methods = s.texts(s.declare("methods", field.Taken, "Methods, in capitals. The request must have one of the methods."),
		"[GET, HEAD]", maxMatches)
	if hasPath {
		s.methodOfPath(v, m)
	}
	m.Hosts = s.texts(s.declare("hosts", field.Taken, "Hosts, without port. The request must have one of the hosts. "+
		"*.example.com matches every name below example.com."), "[api.example.com]", maxMatches)
	s.pairs(s.declare("headers", field.Taken, "Headers and their values. The request must have all headers. * matches any value."),
		"{X-Tenant: a}", &m.Headers)
	s.pairs(s.declare("query", field.Taken, "Names and values of the query, decoded. The request must have all of them. * matches "+
		"any value."), "{format: json}", &m.Query)
	s.addresses(m)
	s.outline.field("domain").text("", "", 0, 0)
	s.textOf(s.declare("domain", field.Taken, "Domain of a query to a decision server, exactly. Rules that name neither a "+
		"domain nor descriptors match no such query."), &m.Domain)
	s.pairs(s.declare("descriptors", field.Taken, "Descriptors and their values in a query to a decision server. The query must "+
		"have all of them. * matches any value."), "{tenant: a}", &m.Descriptors)
}

// defaultMaxBody is how much of a request's body rules read, in bytes.
const defaultMaxBody = 1 << 20

// bodies says whether a match may read the bodies of requests. Only rules do.
type bodies bool

const (
	withoutBodies bodies = false
	withBodies    bodies = true
)

// bodyFields reads the fields of a match that compare the body of a request.
func (s *section) bodyFields(m *rule.Match, reads bodies) {
	if reads == withoutBodies {
		for _, name := range [...]string{"model", "json"} {
			s.record(name)
			s.outline.field(name).refuse()
			if s.has(name) {
				s.fault(s.keyOf(name), "is in a match that sees no body: only rules read bodies", "use other fields, or write it in a rule")
			}
		}
		return
	}
	s.declare("model", field.Taken, "Model that the JSON body names, or the path in the APIs of Gemini and Bedrock. Only in rules.")
	s.outline.field("model").text("", "", 0, 0)
	if v, ok := s.textOf("model", &m.Model); ok && m.Model == "" {
		s.fault(v, "has no value", `write the model, like "gpt-4*"`)
	}
	s.pairs(s.declare("json", field.Taken, "Strings, numbers and booleans of a JSON body by their paths. The body must have all of them. "+
		"* matches any value. Only in rules."), "{method: tools/call, params.name: search}", &m.JSON)
}

// methodOfPath reads a path of Go's ServeMux that begins with a method: GET /users/{id}.
func (s *section) methodOfPath(v value, m *rule.Match) {
	method, path, found := rule.CutMethod(m.Path)
	switch {
	case !found:
	case len(m.Methods) > 0:
		s.fault(v, "begins with the method "+method+", beside the field methods", "write the method in one of them")
	default:
		m.Path, m.Methods = path, []string{method}
	}
}

// checkPathLetters rejects paths that no request can have, because the proxy cleans paths and
// refuses such requests before any rule applies.
func (r *reader) checkPathLetters(v value) {
	switch bad, at := rule.FaultyPathText(v.text()); {
	case bad == "":
	case len(bad) == 1:
		r.faultAt(v, at, "no request can have "+quote(bad)+" in its path", "remove it")
	default:
		r.fault(v, "no request can have a segment "+quote(bad)+" in its path", "remove it")
	}
}

// pairs reads a mapping of names to required values.
func (s *section) pairs(field, example string, into *map[string]string) {
	pairs := s.sub(field, example)
	pairs.outline.each(maxMatches).text("", "", 0, 0)
	if pairs.self.node == nil {
		return
	}
	if len(pairs.names) > maxMatches {
		s.fault(pairs.self, fmt.Sprintf("has %d %s", len(pairs.names), field), fmt.Sprintf("use at most %d", maxMatches))
		return
	}
	found := make(map[string]string, len(pairs.names))
	for _, name := range pairs.names {
		text := ""
		if _, ok := pairs.text(name, &text); ok {
			found[name] = text
		}
	}
	*into = found
}
