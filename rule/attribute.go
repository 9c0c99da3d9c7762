package rule

import (
	"cmp"
	"strings"
)

// attribute is one condition on a request: a host, or a field.
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

// attributeCounts has the number of entries with each attribute, and the number of
// entries with each field, for any value.
type attributeCounts struct {
	indexes map[attribute]int
	fields  map[field]int
}

func countAttributes(entries []entry) attributeCounts {
	counts := attributeCounts{map[attribute]int{}, map[field]int{}}
	for _, e := range entries {
		if e.rest == nil {
			continue
		}
		for i := range e.rest.hosts {
			counts.indexes[e.rest.hosts[i].attribute()]++
		}
		for i := range e.rest.fields {
			p := &e.rest.fields[i]
			counts.indexes[p.attribute()]++
			counts.fields[p.field]++
		}
	}
	return counts
}

// group puts the entry under its rarest attribute and removes that attribute from its
// conditions. An entry with several hosts goes under each host. group reports false
// for an entry without attributes.
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

// rarestField returns the field that best separates the entry from the others. It
// reports false when the hosts separate the entry better.
//
// Up to fewEntries rules are compared one by one, so they count as unique. Hosts then
// come first, and then the field that most entries use, because every field costs a
// lookup for every request.
func (c attributeCounts) rarestField(rest *conditions) (best int, found bool) {
	fewest, most := 0, 0
	for i := range rest.hosts {
		fewest = max(fewest, c.indexes[rest.hosts[i].attribute()], fewEntries)
	}
	for i := range rest.fields {
		p := &rest.fields[i]
		n, users := max(c.indexes[p.attribute()], fewEntries), c.fields[p.field]
		if fewest == 0 || n < fewest || n == fewest && found && users > most {
			best, fewest, most, found = i, n, users, true
		}
	}
	return best, found
}
