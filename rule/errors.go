package rule

import "fmt"

// ParseError says what is wrong in a text of a configuration and what to write
// instead.
type ParseError struct {
	Problem string
	Fix     string
	// Offset is where the fault begins, in bytes from the start of the text; it is
	// the length of the text when something is missing at its end.
	Offset int
}

// Error gives problem and fix in one sentence.
func (e *ParseError) Error() string { return fmt.Sprintf("rule: %s: %s", e.Problem, e.Fix) }

// KeyError says which part of a key does not fit the others.
type KeyError struct {
	// Part is the position of the faulty part; it is 0 for an empty key.
	Part    int
	Problem string
	Fix     string
}

// Error gives problem and fix in one sentence.
func (e *KeyError) Error() string { return fmt.Sprintf("rule: key %s: %s", e.Problem, e.Fix) }

// RuleError says which field of which rule is at fault.
type RuleError struct {
	// Rule is the position of the rule in the list that was checked.
	Rule int
	// Field is the way to the field as a configuration writes it: "name",
	// "match.path", "match.hosts[1]", "match.headers.X-Tenant",
	// "match.descriptors.tenant", "key[0]".
	Field   string
	Problem string
	Fix     string
}

// Error gives position, problem and fix in one sentence.
func (e *RuleError) Error() string {
	return fmt.Sprintf("rule: rules[%d].%s %s: %s", e.Rule, e.Field, e.Problem, e.Fix)
}

// OverrideError says which value of a list of overrides is at fault.
type OverrideError struct {
	// Index is the position of the value in the list.
	Index   int
	Problem string
	Fix     string
}

// Error gives position, problem and fix in one sentence.
func (e *OverrideError) Error() string {
	return fmt.Sprintf("rule: overrides[%d] %s: %s", e.Index, e.Problem, e.Fix)
}

// quoteLength is how much of a faulty text a message repeats: enough to find it
// again, and too little to fill a terminal.
const quoteLength = 48

// quote repeats a faulty text in a message, escaped and cut.
func quote(text string) string {
	if len(text) <= quoteLength {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", text[:quoteLength])
}
