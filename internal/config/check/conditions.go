package check

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// conditions are the fields of a match other than its path, each as one normalized text. Two
// spellings with the same meaning have the same text. The text "" matches every request.
type conditions [6]string

// The last text has all that few rules have: the query, the addresses, the body, and what the rule leaves out. A rule that leaves out
// requests so covers only rules that leave out the same.
func newConditions(r *rule.Rule, lists networkTexts) conditions {
	m := &r.Match
	return conditions{
		spell(m.Methods, withoutMark), spellHosts(m.Hosts),
		spellPairs(m.Headers, http.CanonicalHeaderKey), spellPairs(m.Descriptors, asWritten), withoutMark(m.Domain),
		lists.spellRest(r),
	}
}

func spellHosts(hosts []string) string {
	return spell(hosts, func(host string) string { return withoutMark(strings.ToLower(host)) })
}

// networkTexts has a short text for each list of networks, by the begin of the list: rules share long ones.
type networkTexts map[*netip.Prefix]string

func (lists networkTexts) spellRest(r *rule.Rule) string {
	m := &r.Match
	if len(m.Query)+len(m.Addresses)+len(r.Exempt)+len(m.JSON)+len(m.Model) == 0 && m.Not == nil {
		return ""
	}
	exempt := make([]string, len(r.Exempt))
	for i := range r.Exempt {
		exempt[i] = lists.spellMatch(&r.Exempt[i])
	}
	return fmt.Sprintf("%s %s %s %s %q %s", spellPairs(m.Query, asWritten), lists.spell(m.Addresses), lists.spellMatch(m.Not),
		spell(exempt, asWritten), withoutMark(m.Model), spellPairs(m.JSON, asWritten))
}

// spellMatch returns a text of all fields of a match; "" for none.
func (lists networkTexts) spellMatch(m *rule.Match) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%q %s %s %s %s %s %s %q %s %q %s", m.Path, spell(m.Methods, withoutMark), spellHosts(m.Hosts),
		spellPairs(m.Headers, http.CanonicalHeaderKey), spellPairs(m.Query, asWritten), lists.spell(m.Addresses),
		spellPairs(m.Descriptors, asWritten), m.Domain, lists.spellMatch(m.Not), withoutMark(m.Model),
		spellPairs(m.JSON, asWritten))
}

func (lists networkTexts) spell(networks []netip.Prefix) string {
	if len(networks) == 0 {
		return ""
	}
	text, known := lists[&networks[0]]
	if !known {
		texts := make([]string, len(networks))
		for i, network := range networks {
			texts[i] = network.String()
		}
		text = fmt.Sprintf("%x", sha256.Sum256([]byte(spell(texts, asWritten))))
		lists[&networks[0]] = text
	}
	return text
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
