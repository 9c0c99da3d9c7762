package remote

import (
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// values are the headers, the cookies or the decoded query of a request. Names are compared without regard to case, except in a query.
type values struct {
	entries []headgate.DescriptorEntry
	line    [1]string
	cookies bool
	query   bool
}

// Lookup implements headgate.Values. It trims blanks, as the fronts of HTTP do, and gives a cookie in the form in which they give it.
func (v *values) Lookup(name string) (string, bool) {
	if v.query {
		for i := range v.entries {
			if v.entries[i].Name == name {
				return v.entries[i].Value, true
			}
		}
		return "", false
	}
	if i := v.find(name, 0); i >= 0 {
		if v.cookies {
			return rule.DecodedCookieForm(v.entries[i].Value), true
		}
		return trimmed(v.entries[i].Value), true
	}
	return "", false
}

// trimmed is text without blanks at its ends. Most texts have none, and strings.Trim costs more than the search for a name.
func trimmed(text string) string {
	if n := len(text); n > 0 && (text[0] <= ' ' || text[n-1] <= ' ') {
		return strings.Trim(text, " \t")
	}
	return text
}

// Lines implements headgate.Lines: a message has all lines of a header in one value.
func (v *values) Lines(name string) []string {
	value, found := v.Lookup(name)
	if !found {
		return nil
	}
	v.line[0] = value
	return v.line[:]
}

// find gives the position of a name, from a position on, or -1.
func (v *values) find(name string, from int) int {
	for i := from; i < len(v.entries); i++ {
		if sameName(v.entries[i].Name, name) {
			return i
		}
	}
	return -1
}

// sameName compares names of ASCII letters without regard to case. Unicode has letters that fold to
// ASCII ones, and no service reads them so.
func sameName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && (lower(a[i]) != lower(b[i])) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// once checks that every header and cookie that a rule reads has one value: services may read another
// one of several.
func once(headers, cookies *values, reads *rule.Reads) error {
	if name, found := headers.repeated(reads.Headers); found {
		return &FaultError{
			"headers", "has " + quote(name) + " twice", "send one value, with the lines of the header separated by commas",
		}
	}
	if name, found := cookies.repeated(reads.Cookies); found {
		return &FaultError{"cookies", "has " + quote(name) + " twice", "send one value"}
	}
	return nil
}

// plain checks that every name of the query that a rule reads has one value, and no other case: some services ignore case.
func (v *values) plain(names []string) error {
	for _, name := range names {
		switch i := v.find(name, 0); {
		case i < 0:
		case v.entries[i].Name != name:
			return &FaultError{"query", "has " + quote(v.entries[i].Name), "send " + quote(name) + ", as the rules write it, or nothing"}
		case v.find(name, i+1) >= 0:
			return &FaultError{"query", "has " + quote(name) + " twice", "send one value"}
		}
	}
	return nil
}

// repeated finds a name that has two values.
func (v *values) repeated(names []string) (name string, found bool) {
	if len(v.entries) < 2 {
		return "", false
	}
	for _, name := range names {
		if i := v.find(name, 0); i >= 0 && v.find(name, i+1) >= 0 {
			return name, true
		}
	}
	return "", false
}
