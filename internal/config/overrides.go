package config

import (
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

const (
	// maxOverrides bounds the overrides of one rule, and maxAllOverrides those of one file. A
	// reload reads all of them.
	maxOverrides    = 10_000
	maxAllOverrides = 65_536
	// maxOverrideValue bounds the length of a value. Keys have a digest in place of a value longer than 128 bytes.
	maxOverrideValue = 1024
)

const overridesExample = `{customer-42: {limits: ["1000/s"]}}`

// overrides reads the limits for single values of the key's first part. It returns the limits in
// the order of the file.
func (s *section) overrides(r *guard.Rule, sh shape) []limits {
	o := s.sub(s.declare("overrides", field.Taken, "Limits for single values of the key's first part. They replace the rule's limits."),
		overridesExample)
	each := o.outline.each(maxOverrides)
	if o.self.node == nil {
		return nil
	}
	o.self = s.keyOf("overrides") // Faults about all overrides point at the field's name.
	if !o.countOverrides() {
		return nil
	}
	all := make([]limits, 0, len(o.names))
	names, values := make([]string, 0, len(o.names)), make([]string, 0, len(o.names))
	for _, name := range o.names {
		if s.full {
			break
		}
		if len(name) > maxOverrideValue {
			s.fault(value{path: o.self.path, node: o.fields[name].key}, fmt.Sprintf("a value has %d bytes", len(name)),
				fmt.Sprintf("use at most %d", maxOverrideValue))
			continue
		}
		v, ok := o.valueOf(name)
		if !ok {
			continue
		}
		one := s.section(v, `write it like {limits: ["1000/s"]}`)
		one.outline = each
		text, plain := o.plainName(r.Key, name)
		if one.self.node == nil || !plain {
			continue
		}
		one.required("limits", limitsFix)
		l := one.limits(sh)
		one.end()
		r.Overrides = append(r.Overrides, guard.Override{Value: text, Policies: l.policies})
		all, names, values = append(all, l), append(names, name), append(values, text)
	}
	o.checkValues(r, names, values)
	return all
}

// plainName returns the value that the name of a field stands for: see rule.Part.ParseValue. It reports false if the name looks
// like a pattern. The value belongs to the first part of a key.
func (s *section) plainName(key []rule.Part, name string) (string, bool) {
	if len(key) == 0 {
		return name, true // The key is at fault.
	}
	text, err := key[0].ParseValue(name)
	if err != nil {
		s.parseFault(s.nameOf(name), err)
	}
	return text, err == nil
}

// countOverrides reports false if there are too many overrides.
func (s *section) countOverrides() bool {
	n := len(s.names)
	s.overridden += n
	switch {
	case n > maxOverrides:
		s.fault(s.self, fmt.Sprintf("has %d values", n), fmt.Sprintf("use at most %d", maxOverrides))
	case s.overridden > maxAllOverrides && s.overridden-n <= maxAllOverrides:
		s.fault(s.self, fmt.Sprintf("the overrides of all rules have %d or more values", s.overridden),
			fmt.Sprintf("use at most %d in one file", maxAllOverrides))
	}
	return n <= maxOverrides && s.overridden <= maxAllOverrides
}

// checkValues checks the values, which have the names in the same places, with package rule.
func (s *section) checkValues(r *guard.Rule, names, values []string) {
	if len(r.Key) == 0 || len(values) == 0 {
		return
	}
	if r.Key[0].String() == "all" {
		s.fault(s.self, "key all has only one value", "remove overrides, or use another key")
		return
	}
	_, err := rule.NewOverrides(r.Key[0], values)
	for _, err := range check.Unjoin(err) {
		if bad, found := errortype.As[*rule.OverrideError](err); found {
			name := names[bad.Index]
			v := value{path: s.pathOf(name), node: s.fields[name].key}
			if problem := bad.Problem; name != "" {
				s.fault(v, problem, bad.Fix)
			} else {
				v.path = s.self.path
				s.fault(v, "a value "+problem, bad.Fix)
			}
		}
	}
}
