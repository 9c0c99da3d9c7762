package domain

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// prefixes finds the first of many wildcards that matches a value. It is a tree over the bytes
// before the first * of each wildcard. A lookup follows the bytes of the value.
type prefixes struct {
	wildcards []wildcard // in the order of the file
	nodes     []prefix   // the first one is the empty prefix
}

// prefix is one node of the tree.
type prefix struct {
	label string // the bytes that follow the node above
	// heads has the first byte of the label of each node below. These nodes are neighbours, in
	// the same order, from the position below on.
	heads string
	below int
	// open is the first wildcard of the form prefix* of this node, or of any node above.
	open int
	// others are the other wildcards with exactly this prefix, in the order of the file.
	others []int
	// above is the nearest node above with others, or -1.
	above int
}

// none is larger than the position of any wildcard.
const none = math.MaxInt

// span is a part of the sorted wildcards. All of them begin with the same bytes, at least
// shared many. The node above has the prefix of these bytes without the label of the span's node.
type span struct{ from, to, shared, above int }

// build makes the tree of the wildcards, each level after the level above.
func (p *prefixes) build() {
	sorted := make([]int, len(p.wildcards))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(a, b int) int {
		return cmp.Or(strings.Compare(p.wildcards[a].prefix, p.wildcards[b].prefix), cmp.Compare(a, b))
	})
	spans := []span{{to: len(sorted), above: -1}}
	for i := 0; i < len(spans); i++ {
		spans = p.attach(sorted, spans, i)
	}
}

// attach adds the node of a span. It appends the spans of the nodes below.
func (p *prefixes) attach(sorted []int, spans []span, number int) []span {
	s := spans[number]
	text := func(i int) string { return p.wildcards[sorted[i]].prefix }
	n := prefix{open: none, above: s.above}
	end := 0
	if number > 0 {
		up := &p.nodes[s.above]
		if n.open = up.open; len(up.others) == 0 {
			n.above = up.above
		}
		end = common(text(s.from), text(s.to-1))
		n.label = text(s.from)[s.shared:end]
	}
	i := s.from
	for ; i < s.to && len(text(i)) == end; i++ {
		if p.wildcards[sorted[i]].open() {
			n.open = min(n.open, sorted[i])
		} else {
			n.others = append(n.others, sorted[i])
		}
	}
	n.below = len(spans)
	var heads []byte
	for i < s.to {
		from, head := i, text(i)[end]
		for i < s.to && text(i)[end] == head {
			i++
		}
		heads = append(heads, head)
		spans = append(spans, span{from, i, end, number})
	}
	n.heads = string(heads)
	p.nodes = append(p.nodes, n)
	return spans
}

// common returns the number of bytes with which both texts begin.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// find returns the node of the first wildcard that matches a value, or nil.
func (p *prefixes) find(value string) *node {
	at := p.deepest(value)
	best := p.nodes[at].open
	for ; at >= 0; at = p.nodes[at].above {
		for _, i := range p.nodes[at].others {
			if i >= best {
				break
			}
			if p.wildcards[i].matchRest(value) {
				best = i
				break
			}
		}
	}
	if best == none {
		return nil
	}
	return p.wildcards[best].node
}

// deepest returns the node of the longest prefix of a value.
func (p *prefixes) deepest(value string) int {
	at := 0
	for value != "" {
		n := &p.nodes[at]
		i := strings.IndexByte(n.heads, value[0])
		if i < 0 {
			break
		}
		label := p.nodes[n.below+i].label
		if len(label) > 1 && !strings.HasPrefix(value, label) { // The first byte is the same already.
			break
		}
		at, value = n.below+i, value[len(label):]
	}
	return at
}
