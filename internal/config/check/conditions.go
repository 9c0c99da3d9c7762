package check

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// conditions are the fields of a match other than its path, each as one normalized text. Two
// spellings with the same meaning have the same text. The text "" matches every request.
type conditions [6]string

func newConditions(m *rule.Match) conditions {
	return conditions{
		spell(m.Methods, withoutMark), spell(m.Hosts, func(host string) string { return withoutMark(strings.ToLower(host)) }),
		spellPairs(m.Headers, http.CanonicalHeaderKey), spellPairs(m.Descriptors, asWritten), withoutMark(m.Domain),
		spellPairs(m.Query, asWritten),
	}
}

// fields returns the indexes of the fields that are set, as a set of bits.
func (c *conditions) fields() uint8 {
	var set uint8
	for i, text := range c {
		if text != "" {
			set |= 1 << i
		}
	}
	return set
}

// only returns the conditions of the given fields, without the others.
func (c *conditions) only(fields uint8) conditions {
	var some conditions
	for i, text := range c {
		if fields&(1<<i) != 0 {
			some[i] = text
		}
	}
	return some
}

// withoutMark removes the mark of a literal, if the text is no pattern without the mark.
func withoutMark(text string) string {
	literal, marked := strings.CutPrefix(text, "=")
	if marked && (strings.ContainsAny(literal, "*{") || strings.HasPrefix(literal, "re:")) {
		return text
	}
	return literal
}

func asWritten(text string) string { return text }

// spell returns the same text for lists with the same meaning.
func spell(texts []string, one func(string) string) string {
	if len(texts) == 0 {
		return ""
	}
	spelled := make([]string, len(texts))
	for i, text := range texts {
		spelled[i] = one(text)
	}
	slices.Sort(spelled)
	return fmt.Sprintf("%q", slices.Compact(spelled))
}

func spellPairs(pairs map[string]string, one func(string) string) string {
	texts := make([]string, 0, len(pairs))
	for name, value := range pairs {
		texts = append(texts, fmt.Sprintf("%q: %q", one(name), withoutMark(value)))
	}
	return spell(texts, asWritten)
}
