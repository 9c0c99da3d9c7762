package domain

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// shownLength bounds the part of a long text that KeyText shows, in bytes.
const shownLength = 96

// KeyText returns the key of AppendKey as text for people: the domain, and each name with its
// value, quoted and escaped. The word "all" stands before a wildcard that replaces the value.
//
//	shop path=all "/search*" user="42"
func KeyText(domain string, entries headgate.Descriptors, m *Match) string {
	var b strings.Builder
	b.WriteString(nameText(domain))
	for i := range entries {
		b.WriteString(" " + nameText(entries[i].Name) + "=")
		if pattern, shared := m.pattern(i); shared {
			b.WriteString("all " + valueText(pattern))
		} else {
			b.WriteString(valueText(entries[i].Value))
		}
	}
	return b.String()
}

// nameText returns a name as it is, unless it needs quotes.
func nameText(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"
	if name != "" && len(name) <= shownLength && strings.Trim(name, plain) == "" {
		return name
	}
	return valueText(name)
}

func valueText(value string) string {
	if len(value) <= maxTextLength {
		return strconv.Quote(value)
	}
	return strconv.Quote(value[:shownLength]) + "...(" + strconv.Itoa(len(value)) + " bytes)"
}
