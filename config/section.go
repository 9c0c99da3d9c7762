package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/rule"

	"go.yaml.in/yaml/v4"
)

// section is one mapping of the file. It learns which fields it may have from
// those that are asked for; end reports the others. So there is no second list of
// the fields that could differ from what is read.
type section struct {
	*reader

	self   value // Its node is nil when the file has no such section.
	fields map[string]keyValue
	names  []string // In the order of the file.
	asked  []string
	needed []string
	// merged tells of a merge key: which fields it was to bring is not known.
	merged bool
	// settable tells that its scalars may come from the environment.
	settable bool
	// set counts the fields that were found, in the file or in the environment, those
	// of sections within it too.
	set    int
	parent *section // nil for the root, and for entries of lists
	// restart are the fields that a reload cannot change, by declaration.
	restart []string
	// setting is what NeedsRestart reports for the fields of such a section, and "" else.
	setting string
	// outline is what a schema is made of, and nil unless one is.
	outline *outline
}

type keyValue struct{ key, value *yaml.Node }

// section reads v as a mapping; example shows how one is written. A v without a
// node gives a section without fields, which the environment may still fill.
func (r *reader) section(v value, example string) *section {
	s := &section{reader: r, self: v, fields: map[string]keyValue{}}
	if v.node == nil {
		return s
	}
	if v.node.Kind != yaml.MappingNode {
		r.fault(v, "must be fields, and is "+kindOf(v.node), example)
		s.self.node = nil
		return s
	}
	for i := 0; i+1 < len(v.node.Content) && !r.full; i += 2 {
		s.add(v.node.Content[i], v.node.Content[i+1])
	}
	return s
}

// add takes one field in.
func (s *section) add(key, node *yaml.Node) {
	at := value{path: s.self.path, node: key}
	switch {
	case key.Kind != yaml.ScalarNode:
		s.fault(at, "the name of a field is "+kindOf(key), "write a name, a colon, a space and the value")
		return
	case key.Value == "<<" && key.Style == 0:
		s.merged = true
		s.fault(at, "<< merges fields, which is not supported", "write the fields here, or alias single values")
		return
	}
	if first, twice := s.fields[key.Value]; twice {
		s.fault(at, fmt.Sprintf("%s stands at line %d already", quote(key.Value), first.key.Line), "leave one out")
		return
	}
	s.fields[key.Value] = keyValue{key, node}
	s.names = append(s.names, key.Value)
}

// declare says of a field what its reader does not: what a reload does with it, and what it
// means. It gives the name, for the reader.
func (s *section) declare(name string, reload field.Reload, text string) string {
	s.outline.field(name).declare(field.Field{Name: name, Reload: reload, Text: text})
	if reload == field.Restart {
		s.restart = append(s.restart, name)
	}
	return name
}

// keep notes the value of a field for NeedsRestart. Readers call it when the value is read.
func (s *section) keep(name string, value any) {
	if !slices.Contains(s.restart, name) {
		return
	}
	path := s.pathOf(name)
	s.fixed.Add(path, cmp.Or(s.setting, path), value)
}

func (s *section) ask(name string) {
	s.outline.field(name)
	if !slices.Contains(s.asked, name) {
		s.asked = append(s.asked, name)
	}
}

// found counts a field that is there.
func (s *section) found() {
	for ; s != nil; s = s.parent {
		s.set++
	}
}

// fromEnvironment gives the value that a variable sets, if one does.
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

// get gives the value of a field that the section may have. It reports false when
// there is none, and when the field has none, which is a fault.
func (s *section) get(name string) (value, bool) {
	s.ask(name)
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
	if isNull(f.value) {
		v.node = f.key // There is no place where nothing stands.
		s.fault(v, "has no value", "write one"+s.orLeaveOut(name))
		return v, false
	}
	return s.resolve(v)
}

// sub reads a field that is a section of its own.
func (s *section) sub(name, example string) *section {
	v, ok := s.get(name)
	if !ok {
		v.node = nil
	}
	s.refuseTable(name)
	sub := s.section(v, "write it like "+example)
	sub.settable, sub.parent, sub.outline, sub.setting = s.settable, s, s.outline.field(name), s.setting
	if slices.Contains(s.restart, name) {
		sub.setting = cmp.Or(s.setting, s.pathOf(name))
	}
	return sub
}

// has reports whether the file has the field; it is not asked for.
func (s *section) has(name string) bool {
	_, ok := s.fields[name]
	return ok
}

// keyOf gives the name of a field as a value, for faults about the field itself.
func (s *section) keyOf(name string) value {
	return value{path: s.pathOf(name), node: s.fields[name].key}
}

// given reports whether a single value or a list of them is set, by the file or by
// a variable, and gives what a fault about the field itself points at.
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

// begun reports whether there is a section, or a variable that sets a field of it.
func (s *section) begun() bool { return s.set > 0 || s.self.node != nil }

// required asks for a field that must be there.
func (s *section) required(name, fix string) {
	s.needed = append(s.needed, name)
	s.outline.needs(name)
	if !s.has(name) && !s.merged {
		s.missing(name, fix)
	}
}

// requiredUnless asks for a field that must be there unless the file has another one.
func (s *section) requiredUnless(name, other, fix string) {
	s.outline.needsUnless(name, other)
	if s.has(other) || other == fairShareName && s.fairShareMoved() {
		return
	}
	s.needed = append(s.needed, name)
	if !s.has(name) && !s.merged {
		s.missing(name, fix)
	}
}

// hasField reports whether a mapping, or what an alias repeats, has a field.
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

// orLeaveOut ends the advice for a field without a value.
func (s *section) orLeaveOut(name string) string {
	if slices.Contains(s.needed, name) {
		return ""
	}
	return ", or leave the field out"
}

// missing notes a field that must be there.
func (s *section) missing(name, fix string) {
	v := s.self
	v.path = s.pathOf(name)
	if v.node == nil {
		s.note(Fault{File: s.source.name, Path: v.path, Problem: "is missing", Fix: fix})
		return
	}
	s.fault(v, "is missing", fix)
}

// later notes a field that is planned and not built.
func (s *section) later(name, instead string) {
	s.outline.field(name).later()
	if _, ok := s.get(name); ok {
		s.fault(s.keyOf(name), "is not supported yet", instead)
	}
}

// end notes the fields that nobody asked for.
func (s *section) end() {
	s.outline.end()
	known := make(map[string]bool, len(s.asked))
	for _, name := range s.asked {
		known[name] = true
	}
	for _, name := range s.names {
		if s.full {
			return
		}
		if known[name] {
			continue
		}
		fix := "use one of " + strings.Join(s.asked, ", ")
		if near := rule.Nearest(name, s.asked); near != "" {
			fix = "did you mean " + near + "?"
		}
		s.fault(value{path: s.self.path, node: s.fields[name].key}, "field "+quote(name)+" is not known", fix)
	}
}

// variableOf gives the environment variable of a setting: proxy.listen is
// HEADGATE_PROXY_LISTEN.
func variableOf(path string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// kindOf names what stands where something else should.
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

// quoteLength is how much of a faulty text a message repeats.
const quoteLength = 48

// quote repeats a faulty text in a message, escaped and cut.
func quote(text string) string {
	if len(text) <= quoteLength {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", text[:quoteLength])
}
