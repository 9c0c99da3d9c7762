package rule

import (
	"slices"
	"strings"
)

// fewEntries is how many rules are compared one by one before they are worth a map.
const fewEntries = 4

// entry is a rule in an index, with what is left to check of it.
type entry struct {
	rule int
	rest *conditions
}

// node is a set of rules that fit a request as far as it has been looked at. Its
// maps tell them apart further: each rule stands under the attribute that it
// shares with the fewest others, so that a request meets few that do not fit.
type node struct {
	here    []entry          // compared one by one
	hosts   map[string]*node // by the whole host
	below   map[string]*node // by the host's end, from a dot on
	headers []headerNode     // sorted by name
}

// headerNode tells rules apart by one header.
type headerNode struct {
	name   string
	values map[string]*node
	any    *node // rules that want the header with any value
}

// attribute is one thing that a rule asks of a request.
type attribute struct {
	header      string // its name; "" for a host
	value       string
	below, any_ bool
}

func (p *hostPattern) attribute() attribute { return attribute{value: p.name, below: p.below} }

func (p *headerPattern) attribute() attribute {
	if p.any {
		return attribute{header: p.name, any_: true}
	}
	return attribute{header: p.name, value: p.value}
}

// newNode sorts entries by their rarest attribute, and so on below: a rule goes
// down one level for one attribute, so that it ends.
func newNode(entries []entry) *node {
	n := &node{}
	if len(entries) <= fewEntries {
		n.here = entries
		return n
	}
	counts := countAttributes(entries)
	groups := map[attribute][]entry{}
	for _, e := range entries {
		if !e.group(counts, groups) {
			n.here = append(n.here, e)
		}
	}
	for a, group := range groups {
		n.attach(a, newNode(group))
	}
	slices.SortFunc(n.headers, func(a, b headerNode) int { return strings.Compare(a.name, b.name) })
	return n
}

func countAttributes(entries []entry) map[attribute]int {
	counts := map[attribute]int{}
	for _, e := range entries {
		if e.rest == nil {
			continue
		}
		for i := range e.rest.hosts {
			counts[e.rest.hosts[i].attribute()]++
		}
		for i := range e.rest.headers {
			counts[e.rest.headers[i].attribute()]++
		}
	}
	return counts
}

// group puts the entry under its rarest attribute, which it needs no more there.
// An entry of several hosts goes under each of them; its rarity is that of the
// most common. It reports false for an entry that asks for no attribute.
func (e entry) group(counts map[attribute]int, groups map[attribute][]entry) bool {
	if e.rest == nil || len(e.rest.hosts)+len(e.rest.headers) == 0 {
		return false
	}
	const byHost = -1
	best, fewest := byHost, 0
	for i := range e.rest.hosts {
		fewest = max(fewest, counts[e.rest.hosts[i].attribute()])
	}
	for i := range e.rest.headers {
		if c := counts[e.rest.headers[i].attribute()]; fewest == 0 || c < fewest {
			best, fewest = i, c
		}
	}
	if best != byHost {
		a := e.rest.headers[best].attribute()
		groups[a] = append(groups[a], entry{e.rule, e.rest.withoutHeader(best)})
		return true
	}
	rest := e.rest.withoutHosts()
	for i := range e.rest.hosts {
		a := e.rest.hosts[i].attribute()
		groups[a] = append(groups[a], entry{e.rule, rest})
	}
	return true
}

// attach hangs a child under the attribute that its rules share.
func (n *node) attach(a attribute, child *node) {
	if a.header == "" {
		if a.below {
			n.below = put(n.below, a.value, child)
		} else {
			n.hosts = put(n.hosts, a.value, child)
		}
		return
	}
	i := slices.IndexFunc(n.headers, func(h headerNode) bool { return h.name == a.header })
	if i < 0 {
		i = len(n.headers)
		n.headers = append(n.headers, headerNode{name: a.header})
	}
	if a.any_ {
		n.headers[i].any = child
	} else {
		n.headers[i].values = put(n.headers[i].values, a.value, child)
	}
}

func put(m map[string]*node, name string, child *node) map[string]*node {
	if m == nil {
		m = map[string]*node{}
	}
	m[name] = child
	return m
}

