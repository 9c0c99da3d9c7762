package guard

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/domain"
)

// Domain is the tree of limits for one domain of a decision server. A request to such a server
// names a domain and lists descriptors, and each descriptor is decided on its own.
type Domain struct {
	// Name is the domain that a request names.
	Name string
	// Fallback decides the descriptors of this domain when the store does not answer.
	Fallback Fallback
	// Descriptors are the first level of the tree, in the order of the file.
	Descriptors []Descriptor
}

// Index returns the index of the domain's tree. The Leaf of a match is the position of its limit in
// leaves, which has the leaves in the order of the file. The error is that of domain.Build.
func (d *Domain) Index() (x *DomainIndex, leaves []*Leaf, err error) {
	x, err = domain.Build(nodesOf(d.Descriptors, &leaves, 0))
	return x, leaves, err
}

// nodesOf converts one level of a tree and the levels below. It adds the leaves of these levels.
func nodesOf(descriptors []Descriptor, leaves *[]*Leaf, depth int) []domain.Node {
	if depth > domain.MaxDepth || len(descriptors) == 0 { // Build refuses a tree of that depth.
		return nil
	}
	nodes := make([]domain.Node, len(descriptors))
	for i := range descriptors {
		d := &descriptors[i]
		leaf := domain.NoLeaf
		if d.Leaf != nil {
			leaf = len(*leaves)
			*leaves = append(*leaves, d.Leaf)
		}
		nodes[i] = domain.Node{
			Key: d.Key, Value: d.Value, Literal: d.Literal, ShareThreshold: d.ShareThreshold, Leaf: leaf,
			DetailedMetric: d.DetailedMetric, ValueToMetric: d.ValueToMetric,
			Nodes: nodesOf(d.Descriptors, leaves, depth+1),
		}
	}
	return nodes
}

// Descriptor is a node of the tree. It decides descriptors of a request that have one entry for
// each level down to this node.
//
// On each level, the node with the key and exactly the value of the entry comes first. Otherwise
// the first node with the key and a wildcard that matches the value comes, and then the node with
// the key and without a value.
type Descriptor struct {
	// Key is the key of the entry.
	Key string
	// Value is the value of the entry. A * in it stands for any bytes, also for none. An empty
	// Value matches every value.
	Value string
	// Literal makes a * in Value an ordinary byte.
	Literal bool
	// ShareThreshold counts all values that match the wildcard in Value under one key.
	ShareThreshold bool
	// DetailedMetric names metrics of this node by the values of the request. ValueToMetric does
	// so for the entry of this level.
	DetailedMetric, ValueToMetric bool
	// Leaf is the limit of descriptors that end at this node. nil allows them.
	Leaf *Leaf
	// Descriptors are the next level.
	Descriptors []Descriptor
}

// Leaf is the limit at a node of a tree.
type Leaf struct {
	// Name names the limit in answers and in Replaces; it may be empty.
	Name string
	// Replaces lists the names of other limits. A descriptor of the same request that these limits
	// decide is allowed, and not counted.
	Replaces []string
	// Unlimited allows all descriptors and counts nothing. Policies are then empty.
	Unlimited bool
	// Policies are the limits. A descriptor must pass all of them. No two have the same period.
	Policies []headgate.Policy
	// Mode is Enforce or Shadow.
	Mode Mode
	// QuotaMode makes a request pass as long as one of its descriptors with QuotaMode passes.
	QuotaMode bool
	// Metadata goes with the answer to a request that this limit allows. The values are those of
	// JSON. It must not change after New.
	Metadata map[string]any
}

// leafSubWindows is the number of sub-windows of a sliding window. Its state fills one cache line.
const leafSubWindows = 4

// LeafPolicy returns how a limit of a leaf is counted, and a limit that a request has itself. A
// fixed window counts refused attempts too, and those above the limit, like other decision servers do.
func LeafPolicy(a headgate.Algorithm, l headgate.Limit) headgate.Policy {
	p := headgate.Policy{Algorithm: a, Limit: l}
	switch a {
	case headgate.FixedWindow:
		p.CountRejected, p.CountAll = true, true
	case headgate.SlidingWindow:
		p.SubWindows = leafSubWindows
	default:
	}
	return p
}
