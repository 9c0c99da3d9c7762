package rule

import (
	"maps"
	"slices"
)

// Reads lists the headers, cookies, names of queries and paths of bodies that rules read. Header names are in canonical
// spelling.
type Reads struct {
	// Headers and Cookies decide which rules match and which key counts. A front refuses a
	// request with two values of such a header or cookie, because the service may read the
	// other value.
	Headers, Cookies []string
	// Queries are the names of the query that do the same: see UnclearQuery. AddQuery adds them.
	Queries []string
	// Body are the paths of the JSON body that decide the same, such as model and params.name.
	Body []string
	// Stated are the headers in which a request states its cost or its id. The guard
	// refuses two costs.
	Stated []string

	queries queryReads // of Queries
}

// AddRule adds the headers, the cookies, the names of queries and the paths of bodies that the key and the match of a rule read.
func (r *Reads) AddRule(rule *Rule) {
	for _, p := range rule.Key {
		r.AddPart(p)
	}
	for m := range rule.matches {
		r.addBody(m)
		for name := range m.Headers {
			r.Headers = withName(r.Headers, canonicalHeader(name))
		}
		for _, name := range slices.Sorted(maps.Keys(m.Query)) {
			text := m.Query[name]
			if p, _ := compileValue(text); p.size() > 0 {
				text = "+" // An expression may tell a space from a plus sign.
			}
			r.AddQuery(name, text)
		}
	}
}

// AddPart adds the header, the cookie, the name of the query or the path of the body that a part of a key reads.
func (r *Reads) AddPart(p Part) {
	switch p.kind {
	case partHeader:
		r.Headers = withName(r.Headers, p.name)
	case partCookie:
		r.Cookies = withName(r.Cookies, p.name)
	case partQuery:
		r.AddQuery(p.name, "+") // A key tells a space from a plus sign.
	case partModel, partJSON:
		r.Body = withName(r.Body, p.bodyPath())
	default:
	}
}

// AddStated adds a header in which a request states its cost or its id. AddStated ignores "".
func (r *Reads) AddStated(header string) {
	if header != "" {
		r.Stated = withName(r.Stated, header)
	}
}

func withName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
