package domain

import "slices"

// MaxDepth is the largest number of levels of a tree.
const MaxDepth = 32

// NoLeaf is the Leaf of a node without a limit.
const NoLeaf = -1

// Node is one node of a tree.
type Node struct {
	// Key is the name of the entry, and Value its value. A * in Value stands for any bytes, also
	// for none. An empty Value matches every value.
	Key, Value string
	// Literal makes a * in Value an ordinary byte.
	Literal bool
	// ShareThreshold counts all values that match the wildcard in Value under one key.
	ShareThreshold bool
	// DetailedMetric names the metric of this node by the values of the descriptor on all levels.
	// ValueToMetric does so on the level of this node.
	DetailedMetric, ValueToMetric bool
	// Leaf identifies the limit of descriptors that end at this node, for example as a position in
	// a list. A node without a limit has NoLeaf.
	Leaf int
	// Nodes are the next level, in the order of the file.
	Nodes []Node
}

// node is a Node in an index.
type node struct {
	value                               string
	share, detailedMetric, metric, wild bool
	leaf                                int
	next                                level
}

// level has the nodes of one level by their keys.
type level map[string]*siblings

// siblings are the nodes of one level with the same key.
type siblings struct {
	// values has each node with a value, also wildcards under their text unless a literal has the same text.
	values map[string]*node
	// wild has the nodes with a wildcard. It is nil if there are none.
	wild *prefixes
	// bare is the node without a value, or nil.
	bare *node
}

// add adds a node. It reports false if there is already one with the same value.
func (s *siblings) add(n *node) bool {
	if n.value == "" {
		if s.bare != nil {
			return false
		}
		s.bare = n
		return true
	}
	other := s.values[n.value]
	if other != nil && (other.wild == n.wild || s.hasWildcard(n)) {
		return false
	}
	if s.values == nil {
		s.values = map[string]*node{}
	}
	if other == nil || other.wild {
		s.values[n.value] = n
	}
	if n.wild {
		if s.wild == nil {
			s.wild = &prefixes{}
		}
		s.wild.wildcards = append(s.wild.wildcards, newWildcard(n))
	}
	return true
}

// hasWildcard reports whether a node with the wildcard of n was added.
func (s *siblings) hasWildcard(n *node) bool {
	return n.wild && s.wild != nil && slices.ContainsFunc(s.wild.wildcards, func(w wildcard) bool { return w.node.value == n.value })
}

// find returns the node for a value, or nil.
func (s *siblings) find(value string) *node {
	if n := s.values[value]; n != nil {
		return n
	}
	if s.wild != nil {
		if n := s.wild.find(value); n != nil {
			return n
		}
	}
	return s.bare
}
