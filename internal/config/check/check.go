// Package check finds faults that involve several parts of a configuration. Examples are rules
// that never decide anything, and limits that need more memory than max_memory.
//
// The package reads no file. Its functions take rules and plain values, and return each fault as
// a Finding with the path of the value at fault. Package config reads the file, calls these
// functions and adds the line and the column of each Finding.
package check

import "strings"

// Finding is one fault of a configuration.
type Finding struct {
	// Path names the value at fault, like "rules[3].limits[0]".
	Path string
	// Problem says what is wrong, and Fix what to write instead.
	Problem, Fix string
}

// Blamed reports whether a fault of the value at path, or of a value within it, is already known.
// The checks do not judge such values a second time.
type Blamed func(path string) bool

// Within reports whether path is outer, or the path of a value within outer.
func Within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Unjoin returns the errors that errors.Join joined, or err alone.
func Unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// maxFindings bounds the findings of one check, because looking them up takes linear time.
// Package config reports fewer faults than that.
const maxFindings = 1000

// findings collects findings. A value with a finding counts as blamed.
type findings struct {
	known Blamed
	all   []Finding
}

func (f *findings) add(path, problem, fix string) {
	if len(f.all) < maxFindings {
		f.all = append(f.all, Finding{path, problem, fix})
	}
}

func (f *findings) blamed(path string) bool {
	for _, one := range f.all {
		if Within(one.Path, path) {
			return true
		}
	}
	return len(f.all) == maxFindings || f.known(path)
}
