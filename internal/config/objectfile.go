package config

import (
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/source"
)

// written is what a configuration was read from.
type written struct {
	source      *document
	environment func(string) (string, bool)
	networks    *networkFiles // nil if Parse has read the text
}

// fileTexts has the texts of the objects of a file. It parses the file when they are first used. It is safe for
// concurrent use.
type fileTexts struct {
	written *written
	once    sync.Once
	nodes   map[source.Key]*yaml.Node
}

// get returns the text of an object.
func (t *fileTexts) get(key source.Key) (string, bool) {
	t.once.Do(t.read)
	node, found := t.nodes[key]
	if !found {
		return "", false
	}
	if own, ok := withoutAliases(node); ok {
		node = own
	}
	text, err := yaml.Marshal(node)
	return string(text), err == nil
}

// names returns the names of the objects of a kind, in no order.
func (t *fileTexts) names(kind source.Kind) []string {
	t.once.Do(t.read)
	var names []string
	for key := range t.nodes {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	return names
}

// ObjectTexts gives the texts of the rules, plans and customers of the file, without the newline at their ends. It parses
// the file again.
func (c *Config) ObjectTexts() map[source.Key]string {
	if c.written == nil {
		return nil
	}
	t := fileTexts{written: c.written}
	t.once.Do(t.read)
	all := make(map[source.Key]string, len(t.nodes))
	for key := range t.nodes {
		text, _ := t.get(key)
		all[key] = strings.TrimSuffix(text, "\n")
	}
	return all
}

// FileName gives the name of the file that the configuration was read from; "" for none.
func (c *Config) FileName() string {
	if c.written == nil {
		return ""
	}
	return c.written.source.name
}

func (t *fileTexts) read() {
	t.nodes = map[source.Key]*yaml.Node{}
	root, bad := t.written.source.tree()
	if bad != nil {
		return // The file was read before, so there is no fault.
	}
	for _, kind := range source.Kinds() {
		all := fieldOf(root, kind.Section())
		if all == nil {
			continue
		}
		for i, node := range all.Content {
			switch {
			case all.Kind == yaml.SequenceNode:
				if name := fieldOf(node, "name"); name != nil {
					t.nodes[source.Key{Kind: kind, Name: name.Value}] = node
				}
			case i%2 == 1:
				t.nodes[source.Key{Kind: kind, Name: all.Content[i-1].Value}] = node
			}
		}
	}
}

// fieldOf returns the value of a field of a mapping; nil for none. It follows aliases.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if n = aliased(n); n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return aliased(n.Content[i+1])
		}
	}
	return nil
}

// maxUnaliased bounds the nodes and texts of an object whose aliases are replaced: aliases of aliases grow fast.
const maxUnaliased = 2 * source.MaxText

// withoutAliases copies a tree in which each alias is replaced by what it stands for, because its anchor may be elsewhere. It
// reports false if the tree is too large.
func withoutAliases(n *yaml.Node) (own *yaml.Node, ok bool) {
	left := maxUnaliased
	own = unaliased(n, &left)
	return own, left >= 0
}

func unaliased(n *yaml.Node, left *int) *yaml.Node {
	n = aliased(n)
	own := *n
	own.Anchor, own.Content = "", nil
	*left -= 1 + len(n.Value)
	for _, child := range n.Content {
		if *left < 0 {
			break
		}
		own.Content = append(own.Content, unaliased(child, left))
	}
	return &own
}

func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// withField returns a copy of a mapping in which a field has another value.
func withField(n *yaml.Node, name string, node *yaml.Node) *yaml.Node {
	own := *n
	own.Content = slices.Clone(n.Content)
	for i := 0; i+1 < len(own.Content); i += 2 {
		if own.Content[i].Value == name {
			own.Content[i+1] = node
			return &own
		}
	}
	own.Content = append(own.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, node)
	return &own
}
