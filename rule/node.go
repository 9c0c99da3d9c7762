package rule

import (
	"maps"
	"slices"
)

// fewEntries is how many rules are compared one by one before they are worth a map.
const fewEntries = 4

// entry is a rule in an index, with what is left to check of it.
type entry struct {
	rule int
	rest *conditions
}

// node is the rules that fit a request as far as it has been looked at: one, or a
// crowd. Maps hold nodes as values and most nodes have one rule, so that the last
// step to it follows no pointer.
type node struct {
	one   entry // when crowd is nil
	crowd *crowd
}

// crowd is several rules, or none. Its maps tell them apart further: each rule
// stands under the attribute that it shares with the fewest others, so that a
// request meets few that do not fit.
type crowd struct {
	here   []entry         // compared one by one
	hosts  map[string]node // by the whole host
	below  map[string]node // by the host's end, from a dot on
	fields []fieldCrowd    // in the order of field.compare
}

// fieldCrowd tells rules apart by one header or one descriptor entry.
type fieldCrowd struct {
	field

	values map[string]node
	any    *node // rules that want the field with any value
}

// newNode sorts entries by their rarest attributes, and those of one attribute
// again by the rest of theirs. It ends, since an entry goes down for one of its
// attributes and leaves it behind.
func newNode(entries []entry) node {
	if len(entries) == 1 {
		return node{one: entries[0]}
	}
	if len(entries) <= fewEntries {
		return node{crowd: &crowd{here: entries}}
	}
	c := &crowd{}
	counts := countAttributes(entries)
	groups := map[attribute][]entry{}
	for _, e := range entries {
		if !counts.group(e, groups) {
			c.here = append(c.here, e)
		}
	}
	// In order, so that all values of one field come together.
	for _, a := range slices.SortedFunc(maps.Keys(groups), attribute.compare) {
		c.attach(a, newNode(groups[a]))
	}
	return node{crowd: c}
}

// attach hangs a child under the attribute that its rules share. Attributes come in order.
func (c *crowd) attach(a attribute, child node) {
	if a.kind == fieldNone {
		if a.wild {
			c.below = put(c.below, a.value, child)
		} else {
			c.hosts = put(c.hosts, a.value, child)
		}
		return
	}
	if last := len(c.fields) - 1; last < 0 || c.fields[last].field != a.field {
		c.fields = append(c.fields, fieldCrowd{field: a.field})
	}
	f := &c.fields[len(c.fields)-1]
	if a.wild {
		f.any = &child
	} else {
		f.values = put(f.values, a.value, child)
	}
}

func put(m map[string]node, name string, child node) map[string]node {
	if m == nil {
		m = map[string]node{}
	}
	m[name] = child
	return m
}
