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

// newNode sorts entries by their rarest attributes, and those of one attribute
// again by the rest of theirs. It ends, since an entry goes down for one of its
// attributes and leaves it behind.
func newNode(entries []entry) *node {
	n := &node{}
	if len(entries) <= fewEntries {
		n.here = entries
		return n
	}
	counts := countAttributes(entries)
	groups := map[attribute][]entry{}
	for _, e := range entries {
		if !counts.group(e, groups) {
			n.here = append(n.here, e)
		}
	}
	for a, group := range groups {
		n.attach(a, newNode(group))
	}
	slices.SortFunc(n.headers, func(a, b headerNode) int { return strings.Compare(a.name, b.name) })
	return n
}

// attach hangs a child under the attribute that its rules share.
func (n *node) attach(a attribute, child *node) {
	if a.header == "" {
		if a.wild {
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
	if a.wild {
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
