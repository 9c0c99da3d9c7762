package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/sorting"
)

// Fault is one mistake in a configuration: its position, the problem, and the fix.
type Fault struct {
	// File is the name of the file, or of the environment variable at fault.
	File string
	// Line and Column count from 1, the column in characters. Both are 0 if the fault has no
	// position in the file.
	Line, Column int
	// Path names the value, like "rules[2].limits[0]". For the file as a whole, Path is empty.
	Path    string
	Problem string
	Fix     string
	// Excerpt is the line at fault, followed by a line with a caret below the position.
	Excerpt string
}

// Headline returns the fault in one line, in the format of compiler errors, which editors
// understand.
func (f Fault) Headline() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	if f.Path != "" {
		// The path has names of headers as the file writes them, so control characters are possible.
		b.WriteString(": " + visible([]rune(f.Path)))
	}
	b.WriteString(": " + f.Problem)
	if f.Fix != "" {
		b.WriteString(": " + f.Fix)
	}
	return b.String()
}

// String returns the headline and the excerpt.
func (f Fault) String() string {
	if f.Excerpt == "" {
		return f.Headline()
	}
	return f.Headline() + "\n" + f.Excerpt
}

// Faults are all faults of a configuration, in the order of the file. Faults of environment
// variables come first. There is at least one fault.
//
//nolint:errname // The documentation also calls a mistake in a configuration a fault.
type Faults []Fault

// Error returns the text of each fault, separated by newlines.
func (all Faults) Error() string {
	texts := make([]string, len(all))
	for i, f := range all {
		texts[i] = f.String()
	}
	return strings.Join(texts, "\n")
}

func (all Faults) sort() {
	sorting.StableFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
