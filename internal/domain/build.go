package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxErrors bounds the errors of one Build.
const maxErrors = 1000

// NodeError describes an invalid node.
type NodeError struct {
	// At has the position of the node on each level, from the first level on.
	At []int
	// Field is the field at fault: key, value, share_threshold or descriptors.
	Field string
	// Path names the node by the keys and values down to it, like "key_value.key".
	Path    string
	Problem string
	Fix     string
}

// Error returns the path, the problem and the fix in one sentence.
func (e *NodeError) Error() string {
	return fmt.Sprintf("domain: %s: %s %s: %s", quote(e.Path), e.Field, e.Problem, e.Fix)
}

// quoteLength bounds the part of a path that a message quotes, in bytes.
const quoteLength = 256

func quote(text string) string {
	if len(text) <= quoteLength {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", text[:quoteLength])
}

// Build returns the index of a tree. The error is a *NodeError. For several faults it joins the
// first 1,000 errors (errors.Join), and errors.As finds the first one.
func Build(nodes []Node) (*Index, error) {
	b := &builder{}
	top := b.level(nodes)
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	return &Index{top}, nil
}

// builder has the place in the tree and the errors so far.
type builder struct {
	at   []int
	path []string
	errs []error
}

// level builds one level and all levels below it.
func (b *builder) level(nodes []Node) level {
	if len(nodes) == 0 {
		return nil
	}
	l := make(level, min(len(nodes), 64)) // Most nodes of a large level have the same key.
	for i := range nodes {
		if len(b.errs) == maxErrors {
			return nil
		}
		b.at, b.path = append(b.at, i), append(b.path, nodeText(&nodes[i]))
		b.node(l, &nodes[i])
		b.at, b.path = b.at[:len(b.at)-1], b.path[:len(b.path)-1]
	}
	for _, s := range l {
		if s.wild != nil {
			s.wild.build()
		}
	}
	return l
}

// node adds one node to its level.
func (b *builder) node(l level, from *Node) {
	b.check(from)
	n := &node{
		value: from.Value, share: from.ShareThreshold, leaf: from.Leaf,
		detailedMetric: from.DetailedMetric, metric: from.ValueToMetric, wild: from.wild(),
	}
	s := l[from.Key]
	if s == nil {
		s = &siblings{}
		l[from.Key] = s
	}
	if !s.add(n) && from.Key != "" {
		field := "value"
		if from.Value == "" {
			field = "key"
		}
		b.note(field, "appears twice among its siblings", "remove one of them, or move its descriptors to the other")
	}
	if len(b.at) < MaxDepth {
		n.next = b.level(from.Nodes)
	}
}

// check checks one node by itself.
func (b *builder) check(n *Node) {
	if n.Key == "" {
		b.note("key", "is empty", "write the key of an entry")
	}
	if n.ShareThreshold && !n.wild() {
		b.note("share_threshold", "is only valid with a wildcard", "remove it, or write a * in value")
	}
	if len(b.at) == MaxDepth && len(n.Nodes) > 0 {
		b.note("descriptors", fmt.Sprintf("is the level %d", MaxDepth+1), fmt.Sprintf("use at most %d levels", MaxDepth))
	}
}

// wild reports whether the value is a wildcard.
func (n *Node) wild() bool { return !n.Literal && strings.Contains(n.Value, "*") }

func (b *builder) note(field, problem, fix string) {
	if len(b.errs) < maxErrors {
		b.errs = append(b.errs, &NodeError{slices.Clone(b.at), field, strings.Join(b.path, "."), problem, fix})
	}
}

// nodeText names a node among its siblings.
func nodeText(n *Node) string {
	if n.Value == "" {
		return n.Key
	}
	return n.Key + "_" + n.Value
}
