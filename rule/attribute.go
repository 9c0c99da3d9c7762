package rule

import (
	"cmp"
	"net/netip"
	"strings"
)

// attribute is one condition on a request: a host, a network or a field.
type attribute struct {
	field // the zero field for a host and for a network

	network netip.Prefix // invalid for the others
	value   string
	wild    bool // the end of a host, or any value of a field
}

// attribute returns what the index looks up. A pattern without an end that is known has none.
func (p *hostPattern) attribute() (a attribute, ok bool) {
	return attribute{value: p.name, wild: p.below}, p.name != ""
}

// attribute returns what the index looks up. A pattern has none.
func (p *fieldPattern) attribute() (a attribute, ok bool) {
	if p.any {
		return attribute{field: p.field, wild: true}, true
	}
	return attribute{field: p.field, value: p.value}, p.pattern == nil
}

func (a attribute) compare(b attribute) int {
	return cmp.Or(a.field.compare(b.field), strings.Compare(a.value, b.value), comparePrefixes(a.network, b.network))
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
			if a, ok := e.rest.hosts[i].attribute(); ok {
				counts.indexes[a]++
			}
		}
		for _, network := range e.rest.networks() {
			counts.indexes[attribute{network: network}]++
		}
		for i := range e.rest.fields {
			p := &e.rest.fields[i]
			if a, ok := p.attribute(); ok {
				counts.indexes[a]++
				counts.fields[p.field]++
			}
		}
	}
	return counts
}

// group puts the entry under its rarest attribute and removes that attribute from its
// conditions. An entry with several hosts or networks goes under each of them. group reports false
// for an entry without attributes.
func (c attributeCounts) group(e entry, groups map[attribute][]entry) bool {
	if e.rest == nil {
		return false
	}
	fewest := c.mostAtHost(e.rest)
	networks := c.mostAtNetwork(e.rest)
	byNetworks := networks > 0 && (fewest == 0 || networks < fewest)
	if byNetworks {
		fewest = networks
	}
	if i, found := c.rarestField(e.rest, fewest); found {
		a, _ := e.rest.fields[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, e.rest.withoutField(i)})
		return true
	}
	if byNetworks {
		rest := e.rest.withoutNetworks()
		for _, network := range e.rest.networks() {
			a := attribute{network: network}
			groups[a] = append(groups[a], entry{e.rule, rest})
		}
		return true
	}
	for i := range e.rest.hosts {
		if fewest == 0 {
			return false
		}
		a, _ := e.rest.hosts[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, e.rest.withoutHosts(&e.rest.hosts[i])})
	}
	return fewest > 0
}

// mostAtHost returns the largest number of entries at a host of the entry. It is 0 when the index cannot look up all its hosts.
func (c attributeCounts) mostAtHost(rest *conditions) int {
	most := 0
	for i := range rest.hosts {
		a, ok := rest.hosts[i].attribute()
		if !ok {
			return 0
		}
		most = max(most, c.indexes[a], fewEntries)
	}
	return most
}

// mostAtNetwork returns the largest number of entries at a network of the entry, or 0 without networks.
func (c attributeCounts) mostAtNetwork(rest *conditions) int {
	most := 0
	for _, network := range rest.networks() {
		most = max(most, c.indexes[attribute{network: network}], fewEntries)
	}
	return most
}

// rarestField returns the field that best separates the entry from the others. It
// reports false when the hosts or the networks, with at most fewest entries, separate the entry better.
//
// Up to fewEntries rules are compared one by one, so they count as unique. Hosts then
// come first, and then the field that most entries use, because every field costs a
// lookup for every request.
func (c attributeCounts) rarestField(rest *conditions, fewest int) (best int, found bool) {
	most := 0
	for i := range rest.fields {
		a, ok := rest.fields[i].attribute()
		if !ok {
			continue
		}
		n, users := max(c.indexes[a], fewEntries), c.fields[a.field]
		if fewest == 0 || n < fewest || n == fewest && found && users > most {
			best, fewest, most, found = i, n, users, true
		}
	}
	return best, found
}
