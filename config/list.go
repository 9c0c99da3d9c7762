package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// list reads a list of least to most entries; example shows how one is written.
func (s *section) list(name, example string, least, most int) ([]value, bool) {
	v, ok := s.get(name)
	if !ok {
		return nil, false
	}
	n := len(v.node.Content)
	switch {
	case v.node.Kind != yaml.SequenceNode:
		s.fault(v, "must be a list, and is "+kindOf(v.node), "write it like "+example)
		return nil, false
	case n < least:
		s.fault(v, "is an empty list", "write at least one entry, like "+example+s.orLeaveOut(name))
		return nil, false
	case n > most:
		s.fault(v, fmt.Sprintf("has %d entries", n), fmt.Sprintf("use at most %d", most))
		return nil, false
	}
	entries := make([]value, 0, n)
	for i, node := range v.node.Content {
		if s.full {
			break
		}
		// Entries keep their numbers: one that is at fault stays, without a node.
		entry, ok := s.resolve(value{path: fmt.Sprintf("%s[%d]", v.path, i), node: node})
		if !ok {
			entry.node = nil
		}
		entries = append(entries, entry)
	}
	return entries, true
}

// scalars reads a list of single values. Those at fault are left out, and whole
// reports whether there is none.
func (s *section) scalars(name, example string, most int) (entries []value, whole bool) {
	all, ok := s.list(name, example, 1, most)
	whole = ok
	for _, v := range all {
		switch {
		case v.node == nil:
			whole = false
		case v.node.Kind != yaml.ScalarNode:
			s.fault(v, "must be one value, and is "+kindOf(v.node), "write the list like "+example)
			whole = false
		default:
			entries = append(entries, v)
		}
	}
	return entries, whole
}

// texts reads a list of single values as they are written; it is nil when one of
// them is at fault, so that its positions are those of the file.
func (s *section) texts(name, example string, most int) []string {
	entries, whole := s.scalars(name, example, most)
	if !whole {
		return nil
	}
	texts := make([]string, len(entries))
	for i, v := range entries {
		texts[i] = v.text()
	}
	return texts
}
