package http

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// maxDepth bounds the nesting of a YAML document. The parser is recursive.
	maxDepth = 96
	// maxSeparators bounds what can begin a value of a YAML document: a value takes up to 170 bytes in the tree, and each separator
	// adds up to two values. 200,000 customers have up to 15 each.
	maxSeparators = 3_000_000
)

func parseYAML(text []byte) (*collection, error) {
	if len(text) > MaxYAML {
		return nil, fmt.Errorf("the document is larger than %d MiB and is not JSON: send JSON", MaxYAML>>20)
	}
	if separators(text) > maxSeparators {
		return nil, fmt.Errorf("the document has more than %d separators of values and is not JSON: send JSON", maxSeparators)
	}
	var document yaml.Node
	if err := yaml.Load(text, &document, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))); err != nil {
		return nil, fmt.Errorf("the document is neither JSON nor YAML: %w", err)
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the document is not a mapping: " + documentFix)
	}
	c := newCollection()
	root, sections := document.Content[0], map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		section := root.Content[i].Value
		if sections[section] {
			return nil, fmt.Errorf("the document has %q twice: write it once", section)
		}
		sections[section] = true
		kind, objects, err := kindOf(section)
		if err == nil && objects {
			err = c.section(kind, root.Content[i+1])
		}
		if err != nil {
			return nil, err
		}
	}
	return c.complete(sections)
}

// section reads the objects of one kind.
func (c *collection) section(kind source.Kind, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	c.given[kind] = true
	switch {
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Kind != yaml.ScalarNode {
				return fmt.Errorf("a name in %s is not a text: %s", kind.Section(), documentFix)
			}
			if err := c.node(kind, n.Content[i].Value, n.Content[i+1]); err != nil {
				return err
			}
		}
		return nil
	case n.Kind == yaml.SequenceNode && kind == source.Rule:
		return c.ruleList(n)
	}
	return fmt.Errorf("%s is not a mapping: %s", kind.Section(), documentFix)
}

// ruleList reads a list of rules, as in the file.
func (c *collection) ruleList(n *yaml.Node) error {
	for _, one := range n.Content {
		name := ""
		for i := 0; i+1 < len(one.Content); i += 2 {
			if one.Kind == yaml.MappingNode && one.Content[i].Value == "name" {
				name = one.Content[i+1].Value
			}
		}
		if name == "" {
			return errors.New("a rule of the list has no name: give each one")
		}
		if err := c.node(source.Rule, name, one); err != nil {
			return err
		}
	}
	return nil
}

// node adds an object of a tree.
func (c *collection) node(kind source.Kind, name string, n *yaml.Node) error {
	if hasAlias(n) {
		return fmt.Errorf("%s/%s has an alias or an anchor: write the values out", kind.Section(), name)
	}
	if left := source.MaxText + 16; isLong(n, &left) {
		return c.add(kind, name, longText+strings.Repeat(" ", source.MaxText+1-len(longText)))
	}
	text, err := yaml.Marshal(n)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", kind.Section(), name, err)
	}
	return c.add(kind, name, strings.TrimSuffix(string(text), "\n"))
}

func hasAlias(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return true
	}
	return slices.ContainsFunc(n.Content, hasAlias)
}

// longText begins the text that stands for a longer one than the receiver takes.
const longText = "# The object is too long."

// isLong reports whether the text of a tree is longer than left, and takes what it has. It writes no text: the writer takes two
// KiB for each value until it ends.
func isLong(n *yaml.Node, left *int) bool {
	if *left -= len(n.Value) + 1; *left < 0 {
		return true
	}
	return slices.ContainsFunc(n.Content, func(one *yaml.Node) bool { return isLong(one, left) })
}

// separators counts what can begin a value: at least half of the values of the text.
func separators(text []byte) (n int) {
	for i, c := range text {
		switch c {
		case ',', ':', '[', '{', '?', '\n', '\r':
			n++
		case '-':
			if i+1 == len(text) || text[i+1] <= ' ' || text[i+1] >= utf8.RuneSelf { // Some breaks of lines are not ASCII.
				n++
			}
		}
	}
	return n
}
