package usage

import (
	"fmt"
	"strings"
)

// Merge says which of the numbers counts that a stream states for one field.
type Merge uint8

const (
	// Max is the highest number.
	Max Merge = iota
	// Last is the last number.
	Last
	// Sum is the sum of all numbers.
	Sum
)

// Bounds of a Program.
const (
	// MaxFields bounds the fields of a Program: each has a place in the state of a Scan.
	MaxFields = 40
	// MaxTexts bounds the text fields among them.
	MaxTexts = 16
	// MaxDepth bounds the names of a path.
	MaxDepth = 8
	// maxNodes bounds the names in all paths.
	maxNodes = 1 << 10
)

// Field is a value to read.
type Field struct {
	// Paths are the places of the value, like usage.prompt_tokens: the names of objects, separated by dots. An array at the top is
	// passed through, and no other array is.
	Paths []string
	// Merge is how the numbers of several places or events become one.
	Merge Merge
	// Text reads a string, a number or a boolean as text. The last one counts.
	Text bool
}

// Program is a compiled list of fields. It is immutable.
type Program struct {
	fields []Field
	nodes  []node
	texts  int
}

// node is a place in the tree of paths.
type node struct {
	children []child
	fields   []int8
}

type child struct {
	name string
	to   int16
}

// Compile compiles fields, which results are read by: see Scan.Number.
func Compile(fields []Field) (*Program, error) {
	if len(fields) > MaxFields {
		return nil, fmt.Errorf("usage: %d fields: the rules together can read at most %d", len(fields), MaxFields)
	}
	p := &Program{fields: fields, nodes: make([]node, 1)}
	for i := range fields {
		if fields[i].Text {
			p.texts++
		}
		for _, path := range fields[i].Paths {
			if err := p.add(path, int8(i)); err != nil {
				return nil, err
			}
		}
	}
	if p.texts > MaxTexts {
		return nil, fmt.Errorf("usage: %d texts: the rules together can read at most %d", p.texts, MaxTexts)
	}
	return p, nil
}

// add adds a path of a field to the tree.
func (p *Program) add(path string, field int8) error {
	names := strings.Split(path, ".")
	if len(names) > MaxDepth {
		return fmt.Errorf("usage: %q has %d names: use at most %d", path, len(names), MaxDepth)
	}
	at := int16(0)
	for _, name := range names {
		if name == "" || len(name) > maxToken {
			return fmt.Errorf("usage: %q has a name of %d bytes: write names of 1 to %d bytes between the dots", path, len(name), maxToken)
		}
		next := p.find(at, []byte(name))
		if next == nowhere {
			if len(p.nodes) == maxNodes {
				return fmt.Errorf("usage: the paths have more than %d names", maxNodes)
			}
			next = int16(len(p.nodes))
			p.nodes = append(p.nodes, node{})
			p.nodes[at].children = append(p.nodes[at].children, child{name, next})
		}
		at = next
	}
	p.nodes[at].fields = append(p.nodes[at].fields, field)
	return nil
}

// nowhere is the node of values that no path leads to.
const nowhere int16 = -1

// find returns the node of a member of an object at a node.
func (p *Program) find(at int16, name []byte) int16 {
	children := p.nodes[at].children
	for i := range children {
		if string(name) == children[i].name {
			return children[i].to
		}
	}
	return nowhere
}
