// Package field declares the fields of a configuration: what a field is called, what it
// means, and how a reload takes a new value. The package knows no section and no file format.
//
// The readers of package config declare each field where they read it. Schema, environment
// variables, the tables of docs/configuration.md and docs/reference/, and the check of a reload use the declaration.
//
// The Format functions write sizes, durations and limits as a configuration writes them.
package field

import (
	"reflect"
	"slices"
)

// Reload says what a reload does with a new value of a field.
type Reload uint8

const (
	// Taken takes effect at the reload.
	Taken Reload = iota
	// Restart takes effect at the next start; the rest of the reload takes effect.
	Restart
	// Refused makes the reload fail. The whole configuration waits for a restart.
	Refused
)

// String returns the word that the documentation uses.
func (r Reload) String() string {
	switch r {
	case Restart:
		return "restart"
	case Refused:
		return "refused"
	default:
		return "taken"
	}
}

// Field declares one field.
type Field struct {
	Name   string
	Reload Reload
	// Text says in a sentence or two what the field is.
	Text string
}

// Fixed are the values of the fields of class Restart in one configuration, by path.
type Fixed struct{ values []fixed }

type fixed struct {
	path  string
	value any
}

// Add notes the value of a field.
func (f *Fixed) Add(path string, value any) { f.values = append(f.values, fixed{path, value}) }

// Changed lists the paths of the fields with a different value in next, each once, in the order of Add. A
// field that next does not have is not compared.
func (f *Fixed) Changed(next *Fixed) []string {
	var paths []string
	for _, mine := range f.values {
		i := slices.IndexFunc(next.values, func(other fixed) bool { return other.path == mine.path })
		if i >= 0 && !reflect.DeepEqual(mine.value, next.values[i].value) && !slices.Contains(paths, mine.path) {
			paths = append(paths, mine.path)
		}
	}
	return paths
}
