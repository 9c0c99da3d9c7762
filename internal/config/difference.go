package config

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/source"
)

// Difference names what differs between two configurations that were read from files, sorted: rules, plans and customers by the
// text of their Keys, like rules/search, and other settings by their paths, like proxy.upstream. It contains no values. It parses
// both files again.
func Difference(former, next *Config) []string {
	names := make(map[string]struct{})
	before, after := former.ObjectTexts(), next.ObjectTexts()
	for key, text := range after {
		if was, found := before[key]; !found || was != text {
			names[key.String()] = struct{}{}
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			names[key.String()] = struct{}{}
		}
	}
	differ("", former.settings(), next.settings(), func(path string) { names[path] = struct{}{} })
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// settings returns the tree of the file without its objects; nil without a file.
func (c *Config) settings() *yaml.Node {
	if c.written == nil {
		return nil
	}
	root, bad := c.written.source.tree()
	if bad != nil || root.Kind != yaml.MappingNode {
		return nil
	}
	rest := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(root.Content); i += 2 {
		isObjects := slices.ContainsFunc(source.Kinds(), func(k source.Kind) bool { return k.Section() == root.Content[i].Value })
		if !isObjects {
			rest.Content = append(rest.Content, root.Content[i], root.Content[i+1])
		}
	}
	return rest
}

// differ calls add with the path of each setting that differs. A setting is what is no mapping. Aliases are compared by their names, so
// that the work grows with the length of the files.
func differ(path string, a, b *yaml.Node, add func(path string)) {
	if !isMapping(a) && !isMapping(b) {
		if !equalNodes(a, b) {
			add(path)
		}
		return
	}
	if a != nil && !isMapping(a) || b != nil && !isMapping(b) {
		add(path)
		return
	}
	before, after := children(a), children(b)
	for name, node := range before {
		differ(below(path, name), node, after[name], add)
	}
	for name, node := range after {
		if _, compared := before[name]; !compared {
			differ(below(path, name), nil, node, add)
		}
	}
}

func isMapping(n *yaml.Node) bool { return n != nil && n.Kind == yaml.MappingNode }

// children returns the fields of a mapping by name; none for nil.
func children(n *yaml.Node) map[string]*yaml.Node {
	all := make(map[string]*yaml.Node)
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		all[n.Content[i].Value] = n.Content[i+1]
	}
	return all
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// equalNodes compares without comments, styles and positions.
func equalNodes(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Value == b.Value && a.ShortTag() == b.ShortTag() && slices.EqualFunc(a.Content, b.Content, equalNodes)
}
