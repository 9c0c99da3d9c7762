package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration: where, what, and what to
// write instead.
type Fault struct {
	// File is the file's name, or the name of the environment variable at fault.
	File string
	// Line and Column count from 1, the column in characters. They are 0 when the
	// fault has no place in the file.
	Line, Column int
	// Path is the way to the value: "rules[2].limits[0]". It is empty for the file as a whole.
	Path    string
	Problem string
	Fix     string
	// Excerpt is the line at fault, and below it a line with a caret under the place.
	Excerpt string
}

// Headline gives the fault in one line, in the form that editors and logs know
// from compilers.
func (f Fault) Headline() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	if f.Path != "" {
		// Names of headers in it are as the file has them, escapes included.
		b.WriteString(": " + visible([]rune(f.Path)))
	}
	b.WriteString(": " + f.Problem)
	if f.Fix != "" {
		b.WriteString(": " + f.Fix)
	}
	return b.String()
}

// String gives the headline and the excerpt.
func (f Fault) String() string {
	if f.Excerpt == "" {
		return f.Headline()
	}
	return f.Headline() + "\n" + f.Excerpt
}

// Faults are all that is wrong with a configuration, in the order of the file;
// those of the environment come first. There is at least one.
//
//nolint:errname // what a configuration has is a fault, here as in the documentation
type Faults []Fault

// Error gives all of them, one below the other.
func (all Faults) Error() string {
	texts := make([]string, len(all))
	for i, f := range all {
		texts[i] = f.String()
	}
	return strings.Join(texts, "\n")
}

func (all Faults) sort() {
	slices.SortStableFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
