package rule

import "fmt"

// ParseError describes an invalid text of a configuration and how to correct it.
type ParseError struct {
	Problem string
	Fix     string
	// Offset is the position of the fault in bytes from the start of the text. Offset equals
	// the length of the text when something is missing at the end.
	Offset int
}

// Error returns the problem and the fix in one sentence.
func (e *ParseError) Error() string { return fmt.Sprintf("rule: %s: %s", e.Problem, e.Fix) }

// KeyError describes a part of a key that is invalid together with the other parts.
type KeyError struct {
	// Part is the position of the invalid part. Part is 0 for an empty key.
	Part    int
	Problem string
	Fix     string
}

// Error returns the problem and the fix in one sentence.
func (e *KeyError) Error() string { return fmt.Sprintf("rule: key %s: %s", e.Problem, e.Fix) }

// RuleError describes an invalid field of a rule.
type RuleError struct {
	// Rule is the position of the rule in the list.
	Rule int
	// Field is the path of the field in a configuration: "name", "match.path",
	// "match.hosts[1]", "match.headers.X-Tenant", "match.descriptors.tenant", "key[0]".
	Field   string
	Problem string
	Fix     string
}

// Error returns the position, the problem and the fix in one sentence.
func (e *RuleError) Error() string {
	return fmt.Sprintf("rule: rules[%d].%s %s: %s", e.Rule, e.Field, e.Problem, e.Fix)
}

// OverrideError describes an invalid value in a list of overrides.
type OverrideError struct {
	// Index is the position of the value in the list.
	Index   int
	Problem string
	Fix     string
}

// Error returns the position, the problem and the fix in one sentence.
func (e *OverrideError) Error() string {
	return fmt.Sprintf("rule: overrides[%d] %s: %s", e.Index, e.Problem, e.Fix)
}

// quoteLength is the length of an invalid text that a message quotes. The quote helps
// to find the text and keeps the message short.
const quoteLength = 48

// quote escapes and shortens an invalid text for a message.
func quote(text string) string {
	if len(text) <= quoteLength {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", text[:quoteLength])
}
