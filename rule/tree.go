package rule

import (
	"maps"
	"slices"
	"strings"
)

// tree has the rules of paths with variables, by segment, and those of expressions. A lookup follows the literal segments by a map.
// It compares the segments with a literal beside a variable one by one, after the map has found those with the same begin. The tests
// of a lookup are bounded by the rules, and each is linear in the length of the path.
type tree struct {
	root        *treeNode
	expressions []treeExpression
}

// treeNode has the templates that begin with the same segments.
type treeNode struct {
	literals map[string]*treeNode
	any      *treeNode // {name} and *, for each segment that is not empty
	// partial has the segments with a literal and a variable, by the literal at their begin. lengths has the different lengths of these
	// literals.
	partial map[string][]treePartial
	lengths []int

	here  *node // templates that end here
	below *node // templates with any rest
	glued []treeGlued
}

// treePartial is a segment with a literal beside a variable, or with a variable of an expression.
type treePartial struct {
	segment segment
	next    *treeNode
}

// treeGlued is a rest that begins within a segment: /a**.
type treeGlued struct {
	text  string
	rules node
}

type treeExpression struct {
	expression *expression
	rules      node
}

// visitTree finds the templates and the expressions of a path.
func (s *search) visitTree(t *tree) {
	if rest, rooted := strings.CutPrefix(s.req.Path, "/"); rooted && t.root != nil {
		s.visitSegments(t.root, rest, true)
	}
	for i := range t.expressions {
		s.looked++
		if t.expressions[i].expression.match(s.req.Path) {
			s.visit(t.expressions[i].rules)
		}
	}
}

// visitSegments visits the templates of a node. rest is the path behind the segments of the node, and more says whether it
// begins a further segment, which may be empty. The depth is that of the templates, at most maxSegments.
func (s *search) visitSegments(n *treeNode, rest string, more bool) {
	if n.below != nil {
		s.visit(*n.below)
	}
	if !more {
		if n.here != nil {
			s.visit(*n.here)
		}
		return
	}
	for i := range n.glued {
		if strings.HasPrefix(rest, n.glued[i].text) {
			s.visit(n.glued[i].rules)
		}
	}
	own, rest, more := cutSegment(rest, '/')
	if next, found := n.literals[own]; found {
		s.visitSegments(next, rest, more)
	}
	if n.any != nil && own != "" {
		s.visitSegments(n.any, rest, more)
	}
	for _, length := range n.lengths {
		if length > len(own) {
			return
		}
		partial := n.partial[own[:length]]
		for i := range partial {
			s.looked++
			if _, matches := partial[i].segment.walk(own, ""); matches {
				s.visitSegments(partial[i].next, rest, more)
			}
		}
	}
}

// treeBuilder collects the entries of templates before their nodes are built.
type treeBuilder struct {
	root        *treeDraft
	expressions map[string]*treeDraftExpression
}

// treeDraft is a treeNode with the entries of its rules.
type treeDraft struct {
	segments    map[string]*treeDraft // by the text of the segment: names of variables do not differ
	shape       segment
	here, below []entry
	glued       map[string][]entry
}

type treeDraftExpression struct {
	expression *expression
	entries    []entry
}

// add adds an entry under its path. text is the pattern as it is written.
func (b *treeBuilder) add(p *pattern, text string, e entry) {
	if p.form == formExpression {
		if b.expressions == nil {
			b.expressions = map[string]*treeDraftExpression{}
		}
		text = strings.Clone(text)
		if b.expressions[text] == nil {
			b.expressions[text] = &treeDraftExpression{expression: p.expression}
		}
		b.expressions[text].entries = append(b.expressions[text].entries, e)
		return
	}
	if b.root == nil {
		b.root = &treeDraft{}
	}
	at := b.root
	for i := range p.segments {
		at = at.child(&p.segments[i])
	}
	switch p.rest {
	case restNone:
		at.here = append(at.here, e)
	case restBelow:
		at.below = append(at.below, e)
	case restGlued:
		if at.glued == nil {
			at.glued = map[string][]entry{}
		}
		at.glued[p.restText] = append(at.glued[p.restText], e)
	}
}

// child returns the draft behind a segment.
func (d *treeDraft) child(s *segment) *treeDraft {
	key := s.key()
	if d.segments == nil {
		d.segments = map[string]*treeDraft{}
	}
	if d.segments[key] == nil {
		d.segments[key] = &treeDraft{shape: *s}
	}
	return d.segments[key]
}

// key returns a text that is equal for segments that match the same texts.
func (s *segment) key() string {
	var b strings.Builder
	b.WriteString(s.first)
	for i := range s.variables {
		v := &s.variables[i]
		b.WriteString("\x00*")
		if v.least > 0 {
			b.WriteByte('+')
		}
		if v.expression != nil {
			b.WriteString(v.expression.compiled.String())
		}
		b.WriteString("\x00")
		b.WriteString(v.next)
	}
	return b.String()
}

// build returns nil when there is no template and no expression.
func (b *treeBuilder) build() *tree {
	if b.root == nil && b.expressions == nil {
		return nil
	}
	t := &tree{}
	if b.root != nil {
		t.root = b.root.build()
	}
	for _, text := range slices.Sorted(maps.Keys(b.expressions)) {
		t.expressions = append(t.expressions, treeExpression{b.expressions[text].expression, newNode(b.expressions[text].entries)})
	}
	return t
}

func (d *treeDraft) build() *treeNode {
	n := &treeNode{here: newNodeOrNil(d.here), below: newNodeOrNil(d.below)}
	for _, text := range slices.Sorted(maps.Keys(d.glued)) {
		n.glued = append(n.glued, treeGlued{text, newNode(d.glued[text])})
	}
	for _, key := range slices.Sorted(maps.Keys(d.segments)) {
		child := d.segments[key]
		n.attach(child.shape, child.build())
	}
	slices.Sort(n.lengths)
	n.lengths = slices.Compact(n.lengths)
	return n
}

// attach adds the node behind a segment.
func (n *treeNode) attach(s segment, next *treeNode) {
	switch {
	case len(s.variables) == 0:
		if n.literals == nil {
			n.literals = map[string]*treeNode{}
		}
		n.literals[s.first] = next
	case s.whole():
		n.any = next
	default:
		if n.partial == nil {
			n.partial = map[string][]treePartial{}
		}
		n.partial[s.first] = append(n.partial[s.first], treePartial{s, next})
		n.lengths = append(n.lengths, len(s.first))
	}
}

func newNodeOrNil(entries []entry) *node {
	if len(entries) == 0 {
		return nil
	}
	n := newNode(entries)
	return &n
}
