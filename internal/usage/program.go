// Package usage finds numbers in the bodies of answers while their bytes pass: in JSON, in lines of JSON, in server-sent events and in
// AWS event streams.
//
// A Scanner never fails, never keeps bytes, and allocates nothing. Its state has a fixed size, whatever the body contains. Bodies come
// from services and clients that may be hostile: every byte costs a bounded amount of work.
package usage

import (
	"fmt"
	"strings"
)

// The bounds of a Program.
const (
	// MaxFields is the maximum of the fields of a Program.
	MaxFields = 48
	// MaxDepth is the maximum of the names of a path.
	MaxDepth = 8
	// maxNodes bounds the names of all paths.
	maxNodes = 512
	// maxToken is the longest name, number or word that a scan reads.
	maxToken = 128
)

// Element is the name of a path that stands for each element of an array.
const Element = "[]"

// Kind says what a Field reads.
type Kind uint8

const (
	// Max reads numbers: the highest counts. Negative numbers are ignored, fractions are rounded up.
	Max Kind = iota
	// Last reads numbers: the last counts.
	Last
	// Sum reads numbers: their sum counts.
	Sum
	// Text reads the last string. A Program has at most one such field.
	Text
	// Word is 1 when a string or a literal was one of Words.
	Word
	// Length is the sum of the bytes of strings.
	Length
)

// Field is a value to find.
type Field struct {
	Kind Kind
	// Fraction reads numbers in millionths, so that fractions count.
	Fraction bool
	// Paths are the places of the value: names separated by dots.
	Paths []string
	// Words are the strings and literals of the kind Word.
	Words []string
}

// child is an edge of the trie.
type child struct {
	name string
	to   int16
}

// node is a place in a document: those of its children that paths name, and the fields that end here.
type node struct {
	children []child
	// lengths has a bit for the length of each child's name, modulo 64.
	lengths uint64
	// fields has a bit for each field whose path ends here; texts has those that read strings, and numbers those that read numbers.
	fields, texts, numbers uint64
	// lengthOf is the field of the kind Length; -1 for none. element is the node of the elements of an array; none if no path has them.
	lengthOf int8
	element  int16
}

const none = int16(-1)

// Program is a set of fields, compiled for one scan. A Program is immutable and safe for concurrent use.
type Program struct {
	fields []Field
	nodes  []node
}

// Compile compiles fields. The order of fields is that of Scanner.Value.
func Compile(fields []Field) (*Program, error) {
	if len(fields) > MaxFields {
		return nil, fmt.Errorf("%d fields: at most %d can be read from one body; remove fields that no rule needs", len(fields), MaxFields)
	}
	p := &Program{fields: fields, nodes: []node{newNode()}}
	for i, f := range fields {
		for _, path := range f.Paths {
			if err := p.add(i, path); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func newNode() node { return node{lengthOf: -1, element: none} }

// CheckPath reports why a path cannot be read; nil if it can.
func CheckPath(path string) error {
	names := strings.Split(path, ".")
	if len(names) > MaxDepth {
		return fmt.Errorf("path %q has %d names: at most %d are read", path, len(names), MaxDepth)
	}
	if names[0] == Element {
		return fmt.Errorf("path %q begins with %s: each element of an array at the top is a document; leave %s out", path, Element, Element)
	}
	for _, name := range names {
		if name == "" {
			return fmt.Errorf("path %q has an empty name: separate names with one dot", path)
		}
		if len(name) > maxToken {
			return fmt.Errorf("path %q has a name of %d bytes: at most %d are read", path, len(name), maxToken)
		}
	}
	return nil
}

func (p *Program) add(field int, path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	at := int16(0)
	for name := range strings.SplitSeq(path, ".") {
		if len(p.nodes) == maxNodes {
			return fmt.Errorf("path %q: all paths have more than %d names; remove fields that no rule needs", path, maxNodes)
		}
		at = p.child(at, name)
	}
	n, bit := &p.nodes[at], uint64(1)<<field
	n.fields |= bit
	switch p.fields[field].Kind {
	case Text, Word:
		n.texts |= bit
	case Length:
		n.lengthOf = int8(field)
	case Max, Last, Sum:
		n.numbers |= bit
	}
	return nil
}

// child gives the child of a node, and makes it.
func (p *Program) child(at int16, name string) int16 {
	to := int16(len(p.nodes))
	if name == Element {
		if e := p.nodes[at].element; e != none {
			return e
		}
		p.nodes[at].element = to
		p.nodes = append(p.nodes, newNode())
		return to
	}
	for _, c := range p.nodes[at].children {
		if c.name == name {
			return c.to
		}
	}
	n := &p.nodes[at]
	n.children = append(n.children, child{name, to})
	n.lengths |= 1 << (len(name) & 63)
	p.nodes = append(p.nodes, newNode())
	return to
}

// find gives the child of a name; none if no path has it.
func (p *Program) find(at int16, name []byte) int16 {
	n := &p.nodes[at]
	if n.lengths&(1<<(len(name)&63)) == 0 {
		return none
	}
	for i := range n.children {
		if n.children[i].name == string(name) {
			return n.children[i].to
		}
	}
	return none
}
