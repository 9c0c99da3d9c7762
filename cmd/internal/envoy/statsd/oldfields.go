package statsd

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

// oldFields returns the fields of a mapping that older versions of statsd_exporter read. Published
// mappings still have them. A field with a section is now a field of that section.
func oldFields() [3]struct{ old, section, name string } {
	return [...]struct{ old, section, name string }{
		{"timer_type", "", "observer_type"},
		{"buckets", "histogram_options", "buckets"},
		{"quantiles", "summary_options", "quantiles"},
	}
}

// renewed returns a mapping with the present names of old fields. Text that is no YAML or has no old
// fields stays as it is.
func renewed(text string) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) != 1 {
		return text, nil //nolint:nilerr // The mapper reports the fault.
	}
	root, changed := document.Content[0], false
	if defaults := fieldOf(root, "defaults"); defaults != nil {
		changed = renew(defaults)
	}
	if all := fieldOf(root, "mappings"); all != nil && all.Kind == yaml.SequenceNode {
		for _, one := range all.Content {
			changed = renew(one) || changed
		}
	}
	if !changed {
		return text, nil
	}
	encoded, err := yaml.Marshal(&document)
	if err != nil {
		return "", errors.New("statsd: the mapping has old fields that cannot be renamed: use observer_type: " + err.Error())
	}
	return string(encoded), nil
}

// renew renames the old fields of a mapping or of the defaults. A present observer_type wins over an
// old timer_type. An old field beside the section of its present one stays: the mapper refuses it.
func renew(m *yaml.Node) (changed bool) {
	for _, f := range oldFields() {
		value, present := fieldOf(m, f.old), f.name
		if f.section != "" {
			present = f.section
		}
		known := fieldOf(m, present) != nil
		if value == nil || known && f.section != "" {
			continue
		}
		remove(m, f.old)
		if f.section != "" {
			value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode(f.name), value}}
		}
		if !known {
			m.Content = append(m.Content, textNode(present), value)
		}
		changed = true
	}
	return changed
}

// fieldOf returns the value of a field, or nil.
func fieldOf(m *yaml.Node, name string) *yaml.Node {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i+1]
		}
	}
	return nil
}

func remove(m *yaml.Node, name string) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			m.Content = append(m.Content[:i], m.Content[i+2:]...)
			return
		}
	}
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
