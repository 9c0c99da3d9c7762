package rule

import (
	"maps"
	"slices"
)

// fewEntries is the largest number of rules to test one by one, without a map.
const fewEntries = 4

// entry is a rule in an index, with its remaining conditions.
type entry struct {
	rule int
	rest *conditions
}

// node has the rules that can still match a request at one step of the lookup: one
// rule, or a branch. Maps have nodes as values, not pointers, because most nodes have
// one rule. The last step then follows no pointer.
type node struct {
	one    entry // valid when branch is nil
	branch *branch
}

// branch has several rules, or no rule. Each rule is under the attribute that it shares
// with the fewest other rules, so that a request tests few rules that do not match.
type branch struct {
	here   []entry         // tested one by one
	hosts  map[string]node // by the full host
	below  map[string]node // by the end of the host, starting with a dot
	fields []fieldBranch   // in the order of field.compare
	// networks has the rules of networks; nil without them.
	networks *networkBranch
}

// fieldBranch separates rules by one header or one descriptor entry.
type fieldBranch struct {
	field

	values map[string]node
	any    *node // rules that accept any value of the field
}

// newNode groups entries by their rarest attributes and builds a child node for each
// group. The recursion ends because each level removes one attribute of an entry.
func newNode(entries []entry) node {
	if len(entries) == 1 {
		return node{one: entries[0]}
	}
	if len(entries) <= fewEntries {
		return node{branch: &branch{here: entries}}
	}
	c := &branch{}
	counts := countAttributes(entries)
	groups := map[attribute][]entry{}
	for _, e := range entries {
		if !counts.group(e, groups) {
			c.here = append(c.here, e)
		}
	}
	// The order keeps all values of one field together.
	for _, a := range slices.SortedFunc(maps.Keys(groups), attribute.compare) {
		c.attach(a, newNode(groups[a]))
	}
	if c.networks != nil {
		c.networks.table = newNetworkTable(c.networks.networks)
		c.networks.networks = nil
	}
	return node{branch: c}
}

// attach adds the child node for an attribute. The caller passes attributes in order.
func (c *branch) attach(a attribute, child node) {
	if a.network.IsValid() {
		if c.networks == nil {
			c.networks = &networkBranch{}
		}
		c.networks.networks, c.networks.nodes = append(c.networks.networks, a.network), append(c.networks.nodes, child)
		return
	}
	if a.kind == fieldNone {
		if a.wild {
			c.below = put(c.below, a.value, child)
		} else {
			c.hosts = put(c.hosts, a.value, child)
		}
		return
	}
	if last := len(c.fields) - 1; last < 0 || c.fields[last].field != a.field {
		c.fields = append(c.fields, fieldBranch{field: a.field})
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
