package domain

import (
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// twinFind finds the nodes for a descriptor by the definition: on each level it tries all nodes in
// three passes. It returns nil without a node.
func twinFind(nodes []Node, entries headgate.Descriptors) []*Node {
	var found []*Node
	for _, e := range entries {
		n := twinChoose(nodes, e)
		if n == nil {
			return nil
		}
		found, nodes = append(found, n), n.Nodes
	}
	return found
}

func twinChoose(nodes []Node, e headgate.DescriptorEntry) *Node {
	for _, pass := range []func(n *Node) bool{
		func(n *Node) bool { return n.Value != "" && n.Value == e.Value },
		func(n *Node) bool { return strings.Contains(n.Value, "*") && twinMatches(n.Value, e.Value) },
		func(n *Node) bool { return n.Value == "" },
	} {
		if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Key == e.Name && pass(&n) }); i >= 0 {
			return &nodes[i]
		}
	}
	return nil
}

// twinMatches matches a wildcard with a table: entry i, j tells whether the first i bytes of the
// pattern match the first j bytes of the value.
func twinMatches(pattern, value string) bool {
	row := make([]bool, len(value)+1)
	row[0] = true
	for i := range len(pattern) {
		next := make([]bool, len(value)+1)
		for j := range next {
			if pattern[i] == '*' {
				next[j] = row[j] || j > 0 && next[j-1]
			} else {
				next[j] = j > 0 && row[j-1] && pattern[i] == value[j-1]
			}
		}
		row = next
	}
	return row[len(value)]
}
