package config

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config/check"
)

const (
	fairShareName = "fair_share"
	// formerFairShare is the former place of the section fair_share. A setting there would have no
	// effect, so it is a fault that names the new place.
	formerFairShare = "proxy." + fairShareName
)

// moved rejects a field that belongs at the top level, and reports whether the section has it.
func (s *section) moved(name string) bool {
	if !s.has(name) {
		return false
	}
	s.fault(s.keyOf(name), "belongs at the top level of the file", "move it out of "+s.self.path)
	s.names = slices.DeleteFunc(s.names, func(other string) bool { return other == name })
	return true
}

// fairShareMoved reports whether fair_share is in its former place, which moved rejects.
func (s *section) fairShareMoved() bool {
	return s.has("proxy") && hasField(s.fields["proxy"].value, fairShareName)
}

// refuseFormer rejects a variable for the former place of fair_share.
func (s *section) refuseFormer(path string) {
	if !check.Within(path, fairShareName) {
		return
	}
	former := variableOf(formerFairShare + strings.TrimPrefix(path, fairShareName))
	if text, ok := s.environment(former); ok && text != "" {
		s.noteOnce(Fault{File: former, Path: path, Problem: "has a new variable", Fix: "set " + variableOf(path) + " instead"})
	}
}

// refuseTable rejects a variable for a field that variables cannot set: a mapping, or a
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
			s.noteOnce(Fault{File: variable, Path: path, Problem: "cannot be set by a variable", Fix: "write " + path + " in the file"})
		}
	}
}

// noteOnce notes the fault of a variable once, though readers may look the variable up several times.
func (r *reader) noteOnce(f Fault) {
	if !slices.Contains(r.faults, f) {
		r.note(f)
	}
}
