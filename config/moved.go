package config

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/config/check"
)

const (
	fairShareName = "fair_share"
	// formerFairShare is where the section fair_share stood once. A setting there would be
	// ignored silently, so it is a fault that names the new place.
	formerFairShare = "proxy." + fairShareName
)

// moved refuses a field that belongs at the top level, and reports whether it is there.
func (s *section) moved(name string) bool {
	if !s.has(name) {
		return false
	}
	s.fault(s.keyOf(name), "belongs at the top level of the file", "move it out of "+s.self.path)
	s.names = slices.DeleteFunc(s.names, func(other string) bool { return other == name })
	return true
}

// fairShareMoved reports whether the section stands in its former place, which moved refuses.
func (s *section) fairShareMoved() bool {
	return s.has("proxy") && hasField(s.fields["proxy"].value, fairShareName)
}

// refuseFormer refuses the variable that set a setting of fair share while the section
// stood elsewhere.
func (s *section) refuseFormer(path string) {
	if !check.Within(path, fairShareName) {
		return
	}
	former := variableOf(formerFairShare + strings.TrimPrefix(path, fairShareName))
	if text, ok := s.environment(former); ok && text != "" {
		s.noteOnce(Fault{File: former, Path: path, Problem: "has another variable now", Fix: "set " + variableOf(path) + " instead"})
	}
}

// refuseTable refuses a variable for a field that variables do not set: a mapping, or a
// list of mappings.
func (s *section) refuseTable(name string) {
	if !s.settable {
		return
	}
	path := s.pathOf(name)
	names := []string{variableOf(path)}
	if check.Within(path, fairShareName) {
		names = append(names, variableOf(formerFairShare+strings.TrimPrefix(path, fairShareName)))
	}
	for _, variable := range names {
		if text, ok := s.environment(variable); ok && text != "" {
			s.noteOnce(Fault{File: variable, Path: path, Problem: "is not set by one variable", Fix: "write " + path + " in the file"})
		}
	}
}

// noteOnce notes a fault of a variable. Readers may ask for one variable several times.
func (r *reader) noteOnce(f Fault) {
	if !slices.Contains(r.faults, f) {
		r.note(f)
	}
}
