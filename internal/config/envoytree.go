package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
)

// maxTreeValues bounds the values of all trees, including the names of fields. A value needs about
// 200 bytes while it is checked. The largest file has fewer descriptors.
const maxTreeValues = 1_000_000

// EnvoyTree is the content of a file in the format of envoyproxy/ratelimit that a program has built.
type EnvoyTree struct {
	// Name is the begin of each fault.
	Name string
	// Root has the fields of the file, in values of JSON: nil, bool, float64, string, []any and
	// map[string]any.
	Root map[string]any
}

// ParseEnvoyTrees is ParseEnvoy for trees. Its faults have paths, like descriptors[0].key, and no
// positions. All trees together have at most a million values.
func ParseEnvoyTrees(trees []EnvoyTree, merge bool) ([]guard.Domain, error) {
	set := envoySet{merge: merge, byName: map[string]*envoyDomain{}}
	b := treeBuilder{left: maxTreeValues}
	for _, tree := range trees {
		root := b.node(tree.Root, 1)
		if b.problem != "" {
			return nil, Faults{{File: visible([]rune(tree.Name)), Problem: b.problem, Fix: b.fix}}
		}
		set.addRoot(&document{name: visible([]rune(tree.Name))}, root)
	}
	return set.result()
}

// treeBuilder builds the nodes that the parser of YAML would build. After the first problem, the
// nodes are incomplete.
type treeBuilder struct {
	left         int // values
	problem, fix string
}

func (b *treeBuilder) node(v any, depth int) *yaml.Node {
	b.left--
	switch {
	case b.left < 0:
		b.problem, b.fix = fmt.Sprintf("the values up to this tree are more than %d", maxTreeValues), "send fewer descriptors"
	case depth > maxDepth:
		b.problem, b.fix = fmt.Sprintf("is nested deeper than %d levels", maxDepth), "use fewer levels"
	}
	if b.problem != "" {
		return &yaml.Node{Kind: yaml.ScalarNode}
	}
	switch v := v.(type) {
	case map[string]any:
		return b.mapping(v, depth)
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, entry := range v {
			if b.problem != "" {
				break
			}
			list.Content = append(list.Content, b.node(entry, depth+1))
		}
		return list
	case string:
		return textNode(v)
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(v, 'f', -1, 64)}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	default:
		b.problem, b.fix = fmt.Sprintf("has a value of the Go type %T", v), "use the types of EnvoyTree"
		return &yaml.Node{Kind: yaml.ScalarNode}
	}
}

func (b *treeBuilder) mapping(fields map[string]any, depth int) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if b.left -= len(fields); b.left < 0 {
		b.node(nil, depth) // This call notes the problem.
		return n
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if b.problem != "" {
			break
		}
		n.Content = append(n.Content, textNode(name), b.node(fields[name], depth+1))
	}
	return n
}

// textNode returns a text in quotes, which is never null, a number or a merge key.
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Tag: "!!str", Value: text}
}
