package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"

	"go.yaml.in/yaml/v4"
)

// section is one mapping of the file. It records the name of each field that a reader queries, and
// end reports the other fields as unknown. Therefore no separate list of fields is needed.
type section struct {
	*reader

	self     value // The node is nil if the file has no such section.
	fields   map[string]keyValue
	names    []string // In the order of the file.
	recorded []string
	needed   []string
	// merged is set by a merge key. Then the file may mean fields that the section does not show.
	merged bool
	// settable is set if environment variables may set scalars of the section.
	settable bool
	// set counts the fields that the file or the environment sets, including those of nested
	// sections.
	set    int
	parent *section // The parent is nil for the root and for entries of lists.
	// restart are the fields that take effect only at a restart.
	restart []string
	// outline collects a schema. It is nil unless Schema runs the reader.
	outline *outline
}

type keyValue struct{ key, value *yaml.Node }

// section reads v as a mapping. example shows a correct mapping. If v has no node, the section has
// no fields, but environment variables may still set some.
func (r *reader) section(v value, example string) *section {
	s := &section{reader: r, self: v, fields: map[string]keyValue{}}
	if v.node == nil {
		return s
	}
	if v.node.Kind != yaml.MappingNode {
		r.fault(v, "must be fields, not "+kindOf(v.node), example)
		s.self.node = nil
		return s
	}
	for i := 0; i+1 < len(v.node.Content) && !r.full; i += 2 {
		s.add(v.node.Content[i], v.node.Content[i+1])
	}
	return s
}

// add adds one field of the file.
func (s *section) add(key, node *yaml.Node) {
	at := value{path: s.self.path, node: key}
	switch {
	case key.Kind != yaml.ScalarNode:
		s.fault(at, "the name of a field is "+kindOf(key), "write a name, a colon, a space and the value")
		return
	case key.Value == "<<" && key.Style == 0:
		s.merged = true
		s.fault(at, "<< merges fields, which is not supported", "write the fields here, or use an alias for each value")
		return
	}
	if first, twice := s.fields[key.Value]; twice {
		s.fault(at, fmt.Sprintf("%s is already set on line %d", quote(key.Value), first.key.Line), "remove one of them")
		return
	}
	s.fields[key.Value] = keyValue{key, node}
	s.names = append(s.names, key.Value)
}

// declare records the meaning of a field and its reload class. It returns the name, so that a
// reader's call can contain the declaration.
func (s *section) declare(name string, reload field.Reload, text string) string {
	s.outline.field(name).declare(field.Field{Name: name, Reload: reload, Text: text})
	if reload == field.Restart {
		s.restart = append(s.restart, name)
	}
	return name
}

// keep notes the value of a field for NeedsRestart. Readers call keep after they read the value.
func (s *section) keep(name string, value any) {
	if !slices.Contains(s.restart, name) {
		return
	}
	s.fixed.Add(s.pathOf(name), value)
}

func (s *section) record(name string) {
	s.outline.field(name)
	if !slices.Contains(s.recorded, name) {
		s.recorded = append(s.recorded, name)
	}
}

// found counts a field that is set, in this section and all sections around it.
func (s *section) found() {
	for ; s != nil; s = s.parent {
		s.set++
	}
}

// fromEnvironment returns the value from the field's variable. It reports false without a variable.
func (s *section) fromEnvironment(name string) (value, bool) {
	if !s.settable {
		return value{}, false
	}
	path := s.pathOf(name)
	s.refuseFormer(path)
	variable := variableOf(path)
	text, ok := s.environment(variable)
	if !ok || text == "" {
		return value{}, false
	}
	return value{path: path, variable: variable, node: &yaml.Node{Kind: yaml.ScalarNode, Value: text}}, true
}

// get returns the value of a known field. It reports false if the field is missing, or if its
// value is null, which is a fault.
func (s *section) get(name string) (value, bool) {
	s.record(name)
	return s.valueOf(name)
}

// valueOf is get for a field of any name.
func (s *section) valueOf(name string) (value, bool) {
	v := value{path: s.pathOf(name)}
	f, ok := s.fields[name]
	if !ok {
		return v, false
	}
	s.found()
	v.node = f.value
	if isNull(f.value) && s.nullable {
		return value{path: v.path}, false
	}
	if isNull(f.value) {
		v.node = f.key // A null has no position, so the fault points at the field's name.
		s.fault(v, "has no value", "write one"+s.orLeaveOut(name))
		return v, false
	}
	return s.resolve(v)
}

// sub reads a field that is a mapping.
func (s *section) sub(name, example string) *section {
	v, ok := s.get(name)
	if !ok {
		v.node = nil
	}
	s.refuseTable(name)
	sub := s.section(v, "write it like "+example)
	sub.settable, sub.parent, sub.outline = s.settable, s, s.outline.field(name)
	return sub
}

// has reports whether the file has the field. It does not make the field known.
func (s *section) has(name string) bool {
	_, ok := s.fields[name]
	return ok
}

// keyOf returns the name of a field as a value, for faults about the field itself.
func (s *section) keyOf(name string) value {
	return value{path: s.pathOf(name), node: s.fields[name].key}
}

// given reports whether the file or a variable sets a field that is a scalar or a list of scalars. It
// returns the value for faults about the field itself.
func (s *section) given(name string) (value, bool) {
	if v, ok := s.fromEnvironment(name); ok {
		return v, true
	}
	if !s.has(name) {
		return value{}, false
	}
	return s.keyOf(name), true
}

func (s *section) pathOf(name string) string {
	if s.self.path == "" {
		return name
	}
	return s.self.path + "." + name
}

// begun reports whether the file has the section, or a variable sets one of its fields.
func (s *section) begun() bool { return s.set > 0 || s.self.node != nil }

// required reports a fault if the file lacks the field.
func (s *section) required(name, fix string) {
	s.needed = append(s.needed, name)
	s.outline.needs(name)
	if !s.has(name) && !s.merged {
		s.missing(name, fix)
	}
}

// requiredUnless reports a fault if the file lacks the field and all of the others.
func (s *section) requiredUnless(name, fix string, others ...string) {
	s.outline.needsUnless(name, others)
	for _, other := range others {
		if s.has(other) || other == fairShareName && s.fairShareMoved() {
			return
		}
	}
	s.needed = append(s.needed, name)
	if !s.has(name) && !s.merged {
		s.missing(name, fix)
	}
}

// hasField reports whether a mapping, or the value of an alias, has a field.
func hasField(n *yaml.Node, name string) bool {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

// orLeaveOut returns the end of the fix for a field without a value.
func (s *section) orLeaveOut(name string) string {
	if slices.Contains(s.needed, name) {
		return ""
	}
	return ", or remove the field"
}

// missing notes that a required field is missing.
func (s *section) missing(name, fix string) {
	v := s.self
	v.path = s.pathOf(name)
	if v.node == nil {
		s.note(Fault{File: s.source.name, Path: v.path, Problem: "is missing", Fix: fix})
		return
	}
	s.fault(v, "is missing", fix)
}

// end notes the fields that no reader has queried.
func (s *section) end() {
	s.outline.end()
	known := make(map[string]bool, len(s.recorded))
	for _, name := range s.recorded {
		known[name] = true
	}
	// Only one fault of the section lists the fields: a section may have dozens of them, and many unknown ones.
	listed := ""
	for _, name := range s.names {
		if s.full {
			return
		}
		if known[name] {
			continue
		}
		var fix string
		switch near := rule.Nearest(name, s.recorded); {
		case near != "":
			fix = "did you mean " + near + "?"
		case listed != "":
			fix = "use one of the fields that the fault of " + listed + " lists"
		default:
			listed = quote(name)
			fix = "use one of " + strings.Join(s.recorded, ", ")
		}
		s.fault(value{path: s.self.path, node: s.fields[name].key}, "field "+quote(name)+" is not known", fix)
	}
}

// variableOf returns the environment variable of a setting: HEADGATE_PROXY_LISTEN for proxy.listen.
func variableOf(path string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// kindOf describes a node for faults about values of the wrong kind.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return quote(n.Value)
	}
}

// quoteLength bounds the part of a faulty text that a message repeats, in bytes.
const quoteLength = 48

// quote returns a faulty text for a message, escaped and cut.
func quote(text string) string {
	if len(text) <= quoteLength {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", text[:quoteLength])
}
