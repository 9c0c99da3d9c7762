package config

import (
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v4"
)

const metadataExample = "{service: {name: search}}"

// metadata reads the field metadata. It returns nil without fields.
func (s *section) metadata() map[string]any {
	if o := s.outline.field("metadata"); o != nil {
		o.form(nil, map[string]any{"type": "object"})
	}
	v, ok := s.get("metadata")
	if !ok {
		return nil
	}
	if fields := s.jsonFields(v, "write it like "+metadataExample); len(fields) > 0 {
		return fields
	}
	return nil
}

// jsonFields converts a mapping to values of JSON.
func (r *reader) jsonFields(v value, example string) map[string]any {
	s := r.section(v, example)
	fields := make(map[string]any, len(s.names))
	for _, name := range s.names {
		if r.full {
			break
		}
		fields[name] = r.jsonValue(value{path: s.pathOf(name), node: s.fields[name].value})
	}
	return fields
}

// jsonValue converts any value to a value of JSON: a number to a float64, and a mapping to a map.
func (r *reader) jsonValue(v value) any {
	if isNull(v.node) {
		return nil
	}
	v, ok := r.resolve(v)
	if !ok {
		return nil
	}
	switch v.node.Kind {
	case yaml.MappingNode:
		return r.jsonFields(v, "write it like "+metadataExample)
	case yaml.SequenceNode:
		list := make([]any, len(v.node.Content))
		for i, entry := range v.node.Content {
			list[i] = r.jsonValue(value{path: fmt.Sprintf("%s[%d]", v.path, i), node: entry})
		}
		return list
	default:
		return jsonScalar(v.node)
	}
}

// jsonScalar converts a text. Quotes make it a string.
func jsonScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!bool":
		return n.Value[0] == 't' || n.Value[0] == 'T'
	case "!!int", "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
	return n.Value
}
