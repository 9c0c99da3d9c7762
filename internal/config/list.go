package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// list reads a list of least to most entries. example shows a correct list.
func (s *section) list(name, example string, least, most int) ([]value, bool) {
	s.outline.field(name).list(least, most)
	v, ok := s.get(name)
	if !ok {
		return nil, false
	}
	n := len(v.node.Content)
	switch {
	case v.node.Kind != yaml.SequenceNode:
		s.fault(v, "must be a list, not "+kindOf(v.node), "write it like "+example)
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
		// An entry at fault stays in the list, without a node, so that the other entries keep their index.
		entry, ok := s.resolve(value{path: fmt.Sprintf("%s[%d]", v.path, i), node: node})
		if !ok {
			entry.node = nil
		}
		entries = append(entries, entry)
	}
	return entries, true
}

// scalars reads a list of single values. It leaves out entries at fault, and then reports
// complete as false. An environment variable overrides the file.
func (s *section) scalars(name, example string, most int) (entries []value, complete bool) {
	if s.settable {
		s.outline.field(name).from(variableOf(s.pathOf(name)))
	}
	if v, ok := s.fromEnvironment(name); ok {
		s.record(name)
		s.found()
		return s.separated(v, most)
	}
	all, ok := s.list(name, example, 1, most)
	complete = ok
	for _, v := range all {
		switch {
		case v.node == nil:
			complete = false
		case v.node.Kind != yaml.ScalarNode:
			s.fault(v, "must be one value, not "+kindOf(v.node), "write the list like "+example)
			complete = false
		default:
			entries = append(entries, v)
		}
	}
	return entries, complete
}

// separated reads the list in a variable: values that are separated by commas and optional spaces.
func (r *reader) separated(v value, most int) (entries []value, complete bool) {
	texts := strings.Split(v.text(), ",")
	if len(texts) > most {
		r.fault(v, fmt.Sprintf("has %d entries", len(texts)), fmt.Sprintf("use at most %d", most))
		return nil, false
	}
	complete = true
	for i, text := range texts {
		entry := value{path: fmt.Sprintf("%s[%d]", v.path, i), variable: v.variable}
		entry.node = &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)}
		if entry.text() == "" {
			r.fault(entry, "is empty", "write one comma between entries, and none at the end")
			complete = false
			continue
		}
		entries = append(entries, entry)
	}
	return entries, complete
}

// texts reads a list of texts. It returns nil if an entry is at fault, so that indexes always match
// the file.
func (s *section) texts(name, example string, most int) []string {
	s.outline.field(name).entries().text("", "", 0, 0)
	entries, complete := s.scalars(name, example, most)
	if !complete {
		return nil
	}
	texts := make([]string, len(entries))
	for i, v := range entries {
		texts[i] = v.text()
	}
	return texts
}
