package rule

import (
	"cmp"
	"strings"
)

// attribute is one thing that rules ask of a request: a host, a header or a
// descriptor entry.
type attribute struct {
	field // the zero field for a host

	value string
	wild  bool // the end of a host, or any value of a field
}

func (p *hostPattern) attribute() attribute { return attribute{value: p.name, wild: p.below} }

func (p *fieldPattern) attribute() attribute {
	if p.any {
		return attribute{field: p.field, wild: true}
	}
	return attribute{field: p.field, value: p.value}
}

func (a attribute) compare(b attribute) int {
	return cmp.Or(a.field.compare(b.field), strings.Compare(a.value, b.value))
}

// attributeCounts tells how many entries ask for an attribute, and how many for a
// field whatever its value.
type attributeCounts struct {
	of     map[attribute]int
	fields map[field]int
}

func countAttributes(entries []entry) attributeCounts {
	counts := attributeCounts{map[attribute]int{}, map[field]int{}}
	for _, e := range entries {
		if e.rest == nil {
			continue
		}
		for i := range e.rest.hosts {
			counts.of[e.rest.hosts[i].attribute()]++
		}
		for i := range e.rest.fields {
			p := &e.rest.fields[i]
			counts.of[p.attribute()]++
			counts.fields[p.field]++
		}
	}
	return counts
}

// group puts the entry under its rarest attribute, which it asks for no more
// there; an entry of several hosts goes under each of them. It reports false for
// an entry that asks for no attribute.
func (c attributeCounts) group(e entry, groups map[attribute][]entry) bool {
	if e.rest == nil || len(e.rest.hosts)+len(e.rest.fields) == 0 {
		return false
	}
	if i, found := c.rarestField(e.rest); found {
		a := e.rest.fields[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, e.rest.withoutField(i)})
		return true
	}
	rest := e.rest.withoutHosts()
	for i := range e.rest.hosts {
		a := e.rest.hosts[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, rest})
	}
	return true
}

// rarestField gives the field that tells the entry apart best, or reports false
// when its hosts do.
//
// What is rare enough to be compared one by one is as good as unique: then hosts
// go first, and after them the field that most entries ask for, since every
// field is a lookup for every request.
func (c attributeCounts) rarestField(rest *conditions) (best int, found bool) {
	fewest, most := 0, 0
	for i := range rest.hosts {
		fewest = max(fewest, c.of[rest.hosts[i].attribute()], fewEntries)
	}
	for i := range rest.fields {
		p := &rest.fields[i]
		n, users := max(c.of[p.attribute()], fewEntries), c.fields[p.field]
		if fewest == 0 || n < fewest || n == fewest && found && users > most {
			best, fewest, most, found = i, n, users, true
		}
	}
	return best, found
}
