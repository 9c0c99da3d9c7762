package domain

import "github.com/headgate/headgate"

// Index finds the node of a tree for a descriptor. Index is immutable and safe for concurrent use.
type Index struct{ top level }

// Match has the nodes that Find chose. The zero Match has no nodes. A Match keeps its Index
// alive.
type Match struct {
	depth int
	nodes [MaxDepth]*node
}

// Find finds the node for a descriptor. It reports false if the tree has no node on the level of
// the last entry. m is then the zero Match. Find allocates nothing.
func (x *Index) Find(entries headgate.Descriptors, m *Match) bool {
	if m.depth = 0; len(entries) == 0 || len(entries) > MaxDepth {
		return false
	}
	l := x.top
	for i := range entries {
		s := l[entries[i].Name]
		if s == nil {
			return false
		}
		n := s.find(entries[i].Value)
		if n == nil {
			return false
		}
		m.nodes[i], l = n, n.next
	}
	m.depth = len(entries)
	return true
}

// Leaf returns the Leaf of the last node, and NoLeaf for the zero Match.
func (m *Match) Leaf() int {
	if m.depth == 0 {
		return NoLeaf
	}
	return m.nodes[m.depth-1].leaf
}

// Value returns the value of the node on the level of an entry, as written in the tree. It is "" for
// a node without a value, and without a node on that level.
func (m *Match) Value(entry int) string {
	if entry >= m.depth {
		return ""
	}
	return m.nodes[entry].value
}

// pattern returns the wildcard that stands for the value of an entry in keys and metrics. It
// reports false without a node with share_threshold on that level. m may be nil.
func (m *Match) pattern(entry int) (string, bool) {
	if m == nil || entry >= m.depth || !m.nodes[entry].share {
		return "", false
	}
	return m.nodes[entry].value, true
}
