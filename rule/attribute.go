package rule

import (
	"cmp"
	"strings"
)

// attribute is one thing that rules ask of a request: a host or a header.
type attribute struct {
	header string // its name; "" for a host
	value  string
	wild   bool // the end of a host, or any value of a header
}

func (p *hostPattern) attribute() attribute { return attribute{value: p.name, wild: p.below} }

func (p *headerPattern) attribute() attribute {
	if p.any {
		return attribute{header: p.name, wild: true}
	}
	return attribute{header: p.name, value: p.value}
}

func (a attribute) compare(b attribute) int {
	return cmp.Or(strings.Compare(a.header, b.header), strings.Compare(a.value, b.value))
}

// attributeCounts tells how many entries ask for an attribute, and how many for a
// header whatever its value.
type attributeCounts struct {
	of      map[attribute]int
	headers map[string]int
}

func countAttributes(entries []entry) attributeCounts {
	counts := attributeCounts{map[attribute]int{}, map[string]int{}}
	for _, e := range entries {
		if e.rest == nil {
			continue
		}
		for i := range e.rest.hosts {
			counts.of[e.rest.hosts[i].attribute()]++
		}
		for i := range e.rest.headers {
			h := &e.rest.headers[i]
			counts.of[h.attribute()]++
			counts.headers[h.name]++
		}
	}
	return counts
}

// group puts the entry under its rarest attribute, which it asks for no more
// there; an entry of several hosts goes under each of them. It reports false for
// an entry that asks for no attribute.
func (c attributeCounts) group(e entry, groups map[attribute][]entry) bool {
	if e.rest == nil || len(e.rest.hosts)+len(e.rest.headers) == 0 {
		return false
	}
	if i, found := c.rarestHeader(e.rest); found {
		a := e.rest.headers[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, e.rest.withoutHeader(i)})
		return true
	}
	rest := e.rest.withoutHosts()
	for i := range e.rest.hosts {
		a := e.rest.hosts[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, rest})
	}
	return true
}

// rarestHeader gives the header that tells the entry apart best, or reports false
// when its hosts do.
//
// What is rare enough to be compared one by one is as good as unique: then hosts
// go first, and after them the header that most entries ask for, since every
// name of a header is a lookup for every request.
func (c attributeCounts) rarestHeader(rest *conditions) (best int, found bool) {
	fewest, most := 0, 0
	for i := range rest.hosts {
		fewest = max(fewest, c.of[rest.hosts[i].attribute()], fewEntries)
	}
	for i := range rest.headers {
		h := &rest.headers[i]
		n, users := max(c.of[h.attribute()], fewEntries), c.headers[h.name]
		if fewest == 0 || n < fewest || n == fewest && found && users > most {
			best, fewest, most, found = i, n, users, true
		}
	}
	return best, found
}
