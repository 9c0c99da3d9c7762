package rule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tree has the rules of paths with variables, by segment, and those of expressions. A lookup follows the literal segments by a map.
// It compares the segments with a literal beside a variable one by one, after the map has found those with the same begin. The tests
// of a lookup are bounded by the rules, and each is linear in the length of the path.
type tree struct {
	root        treeNode
	expressions []treeExpression
}

// treeNode has the templates that begin with the same segments: a branch, or one template with its other segments. Maps have nodes as
// values, and templates with the same other segments share them, so that the last step of a lookup follows few pointers.
type treeNode struct {
	tail   *pattern // nil for a branch
	rules  node     // of the tail
	branch *treeBranch
}

// treeBranch has several templates.
type treeBranch struct {
	literals map[string]treeNode
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
	next    treeNode
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
	if rest, rooted := strings.CutPrefix(s.req.Path, "/"); rooted {
		s.visitSegments(&t.root, rest, true)
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
	if n.tail != nil {
		s.looked++
		if n.tail.walkSegments(rest, more) {
			s.visit(n.rules)
		}
		return
	}
	b := n.branch
	if b == nil {
		return
	}
	if b.below != nil {
		s.visit(*b.below)
	}
	if !more {
		if b.here != nil {
			s.visit(*b.here)
		}
		return
	}
	for i := range b.glued {
		if strings.HasPrefix(rest, b.glued[i].text) {
			s.visit(b.glued[i].rules)
		}
	}
	own, rest, more := strings.Cut(rest, "/")
	if next, found := b.literals[own]; found {
		s.visitSegments(&next, rest, more)
	}
	if b.any != nil && own != "" {
		s.visitSegments(b.any, rest, more)
	}
	for _, length := range b.lengths {
		if length > len(own) {
			return
		}
		partial := b.partial[own[:length]]
		for i := range partial {
			s.looked++
			if _, matches := partial[i].segment.walk(own, ""); matches {
				s.visitSegments(&partial[i].next, rest, more)
			}
		}
	}
}

// treeBuilder collects the entries of templates before their nodes are built.
type treeBuilder struct {
	root        *treeDraft
	expressions map[string]*treeDraftExpression
	tails       map[string]*pattern // by the keys of their segments
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

// key returns a text that is equal for templates and expressions that match the same texts.
func (p *pattern) key() string {
	var b strings.Builder
	for i := range p.segments {
		b.WriteString(p.segments[i].key() + "\x00/")
	}
	if p.expression != nil {
		b.WriteString(p.expression.compiled.String())
	}
	return fmt.Sprint(b.String(), p.rest, " ", p.restText)
}

// build returns nil when there is no template and no expression.
func (b *treeBuilder) build() *tree {
	if b.root == nil && b.expressions == nil {
		return nil
	}
	t := &tree{}
	b.tails = map[string]*pattern{}
	if b.root != nil {
		t.root = b.node(b.root)
	}
	for _, text := range slices.Sorted(maps.Keys(b.expressions)) {
		t.expressions = append(t.expressions, treeExpression{b.expressions[text].expression, newNode(b.expressions[text].entries)})
	}
	return t
}

// node builds the node of a draft.
func (b *treeBuilder) node(d *treeDraft) treeNode {
	tail, entries, alone := d.alone()
	if !alone {
		return treeNode{branch: b.branch(d)}
	}
	key := tail.key()
	if b.tails[key] == nil {
		b.tails[key] = &tail
	}
	return treeNode{tail: b.tails[key], rules: newNode(entries)}
}

// alone returns the segments and the entries of a draft with one template.
func (d *treeDraft) alone() (tail pattern, entries []entry, alone bool) {
	tail = pattern{form: formTemplate, separator: '/'}
	for len(d.segments) == 1 && len(d.here)+len(d.below)+len(d.glued) == 0 {
		for _, next := range d.segments {
			tail.segments, d = append(tail.segments, next.shape), next
		}
	}
	switch {
	case len(d.segments) > 0:
	case len(d.here) > 0 && len(d.below)+len(d.glued) == 0:
		return tail, d.here, true
	case len(d.below) > 0 && len(d.here)+len(d.glued) == 0:
		tail.rest = restBelow
		return tail, d.below, true
	case len(d.glued) == 1 && len(d.here)+len(d.below) == 0:
		tail.rest = restGlued
		for text, own := range d.glued {
			tail.restText, entries = text, own
		}
		return tail, entries, true
	}
	return pattern{}, nil, false
}

func (b *treeBuilder) branch(d *treeDraft) *treeBranch {
	n := &treeBranch{here: newNodeOrNil(d.here), below: newNodeOrNil(d.below)}
	for _, text := range slices.Sorted(maps.Keys(d.glued)) {
		n.glued = append(n.glued, treeGlued{text, newNode(d.glued[text])})
	}
	for _, key := range slices.Sorted(maps.Keys(d.segments)) {
		child := d.segments[key]
		n.attach(child.shape, b.node(child))
	}
	slices.Sort(n.lengths)
	n.lengths = slices.Compact(n.lengths)
	return n
}

// attach adds the node behind a segment.
func (n *treeBranch) attach(s segment, next treeNode) {
	switch {
	case len(s.variables) == 0:
		if n.literals == nil {
			n.literals = map[string]treeNode{}
		}
		n.literals[s.first] = next
	case s.whole():
		n.any = &next
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
