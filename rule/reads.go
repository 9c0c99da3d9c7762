package rule

import "slices"

// Reads lists the headers and cookies that rules look at. Names of headers are in
// canonical spelling.
type Reads struct {
	// Headers and Cookies decide which rules match and what a request counts under. A
	// front refuses a request that gives one of them two values: the service may read
	// another value than the rules.
	Headers, Cookies []string
	// Stated are the headers in which a request states its cost or its id. The guard
	// itself refuses two costs.
	Stated []string
}

// AddRule adds what the key and the match of a rule read.
func (r *Reads) AddRule(of *Rule) {
	for _, p := range of.Key {
		r.AddPart(p)
	}
	for name := range of.Match.Headers {
		r.Headers = withName(r.Headers, canonicalHeader(name))
	}
}

// AddPart adds what one part of a key reads.
func (r *Reads) AddPart(p Part) {
	switch p.kind {
	case partHeader:
		r.Headers = withName(r.Headers, p.name)
	case partCookie:
		r.Cookies = withName(r.Cookies, p.name)
	default:
	}
}

// AddStated adds a header in which a request states something; "" is none.
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
