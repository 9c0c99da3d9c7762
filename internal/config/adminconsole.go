package config

import (
	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

const consoleExample = "{actions: true}"

// Console says whether admin.listen serves the console, and what its page offers.
type Console struct {
	// Off serves no console. Default false.
	Off bool
	// Actions offers actions in the page without admin.auth too. The rights of calls stay the same.
	Actions bool
}

// Acts reports whether the page offers actions to a client that may administer.
func (c Console) Acts(auth Auth) bool { return !c.Off && (c.Actions || auth != 0) }

// console reads on, off, or a mapping with actions.
func (s *section) console(name string, into *Console) {
	defer func() { s.keep(name, *into) }()
	o := s.outline.field(name)
	o.words("on", []string{"on", "off"})
	if s.settable {
		o.from(variableOf(s.pathOf(name)))
	}
	v, ok := s.fromEnvironment(name)
	if ok {
		s.record(name)
		s.found()
	} else {
		v, ok = s.get(name)
	}
	nested := value{path: s.pathOf(name)}
	switch {
	case !ok:
	case v.node.Kind == yaml.MappingNode:
		nested.node = v.node
	default:
		s.consoleWord(v, into)
	}
	parts := s.section(nested, "write it like "+consoleExample)
	parts.settable, parts.parent, parts.outline = s.settable, s, o.or()
	parts.boolean(parts.declare("actions", field.Taken, "true offers actions in the page without auth too. With auth, the page always "+
		"offers them to callers that may administer."), &into.Actions)
	parts.end()
	if into.Off && into.Actions {
		at, _ := parts.given("actions") // A variable beside the word off.
		s.fault(at, "has no effect with console off", "remove it, or write console: on")
	}
}

// consoleWord reads a value that is not a mapping.
func (s *section) consoleWord(v value, into *Console) {
	switch {
	case v.node.Kind != yaml.ScalarNode:
		s.fault(v, "must be on, off or fields, not "+kindOf(v.node), "write on, off, or "+consoleExample)
	case v.text() == "on":
	case v.text() == "off":
		into.Off = true
	default:
		fix := "write on, off, or " + consoleExample
		if near := rule.Nearest(v.text(), []string{"on", "off"}); near != "" {
			fix = "did you mean " + near + "?"
		}
		s.fault(v, quote(v.text())+" is not known", fix)
	}
}
