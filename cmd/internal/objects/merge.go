package objects

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/headgate/headgate/internal/config/source"
)

// maxObjectDepth bounds how deep the texts of objects are nested, because merge is recursive.
const maxObjectDepth = 32

// mergeText changes fields of an object's text: those of patch replace those of before, and null removes one. Both are
// mappings in YAML or JSON. Mappings merge field by field, and lists are replaced. fields are the names in patch.
func mergeText(before, patch string) (text string, fields []string, err error) {
	changes, err := mappingOf(patch)
	if err != nil {
		return "", nil, fmt.Errorf("the body: %w", err)
	}
	if changes == nil {
		return "", nil, errors.New("the body is empty: write the fields to change, like {plan: paid}; null removes a field")
	}
	present, err := mappingOf(before)
	if err != nil {
		return "", nil, fmt.Errorf("the present text: %w: write the whole object instead", err)
	}
	if present == nil {
		present = &yaml.Node{Kind: yaml.MappingNode}
	}
	for i := 0; i+1 < len(changes.Content); i += 2 {
		fields = append(fields, changes.Content[i].Value)
	}
	if present.Style&yaml.FlowStyle == 0 {
		unquote(changes)
	}
	mergeNode(present, changes)
	if len(present.Content) == 0 {
		return "{}\n", fields, nil
	}
	out, err := yaml.Dump(present)
	if err != nil {
		return "", nil, fmt.Errorf("the fields cannot be merged: %w: write the whole object instead", err)
	}
	return string(out), fields, nil
}

// unquote writes the texts of a patch in JSON as YAML does: with quotes only where they are needed.
func unquote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		n.Style &^= yaml.DoubleQuotedStyle
	}
	for _, part := range n.Content {
		unquote(part)
	}
}

// mappingOf parses a text, and gives nil for an empty one.
func mappingOf(text string) (*yaml.Node, error) {
	var document yaml.Node
	err := yaml.Load([]byte(text), &document, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxObjectDepth))))
	switch {
	case document.Kind == 0 && (err == nil || text == ""):
		return nil, nil //nolint:nilnil // An empty text is no fault here.
	case err != nil:
		return nil, fmt.Errorf("it is neither YAML nor JSON: %w", err)
	case len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode:
		return nil, errors.New("it has no fields: write them like {plan: paid}")
	}
	left := 2 * source.MaxText
	root := unaliased(document.Content[0], &left)
	if left < 0 {
		return nil, errors.New("its aliases stand for too much text: write it without aliases")
	}
	if !haveNames(root) {
		return nil, errors.New("a field of it has no name: each name must be a text")
	}
	return root, nil
}

// haveNames reports whether all fields of a tree have names. YAML also has mappings, lists and null in their place.
func haveNames(n *yaml.Node) bool {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && (child.Kind != yaml.ScalarNode || child.ShortTag() == "!!null") || !haveNames(child) {
			return false
		}
	}
	return true
}

// unaliased copies a tree in which each alias is replaced by what it stands for: a change of one place is no change of the
// others, and an anchor may be removed. left bounds the nodes and their texts.
func unaliased(n *yaml.Node, left *int) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	own := *n
	own.Anchor, own.Content = "", nil
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		own.Value = "null" // Nothing would come back as an empty text in a mapping of one line.
	}
	*left -= 1 + len(n.Value)
	for _, child := range n.Content {
		if *left < 0 {
			break
		}
		own.Content = append(own.Content, unaliased(child, left))
	}
	return &own
}

// mergeNode merges a mapping into another one.
func mergeNode(into, changes *yaml.Node) {
	for i := 0; i+1 < len(changes.Content); i += 2 {
		name, value := changes.Content[i], changes.Content[i+1]
		at := fieldAt(into, name.Value)
		switch null := value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null"; {
		case null && at >= 0:
			into.Content = slices.Delete(into.Content, at, at+2)
		case null:
		case at < 0 && value.Kind == yaml.MappingNode:
			fresh := &yaml.Node{Kind: yaml.MappingNode, Style: value.Style}
			mergeNode(fresh, value) // Without its nulls.
			into.Content = append(into.Content, name, fresh)
		case at < 0:
			into.Content = append(into.Content, name, value)
		case value.Kind == yaml.MappingNode && into.Content[at+1].Kind == yaml.MappingNode:
			mergeNode(into.Content[at+1], value)
		default:
			into.Content[at+1] = value
		}
	}
}

// fieldAt gives the position of a field's name in a mapping; -1 if there is none.
func fieldAt(mapping *yaml.Node, name string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if n := mapping.Content[i]; n.Kind == yaml.ScalarNode && n.Value == name {
			return i
		}
	}
	return -1
}
