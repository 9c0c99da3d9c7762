package httplimit

import (
	"strings"

	"github.com/headgate/headgate/rule"
)

// unambiguous reports whether every header and cookie that a rule reads has one value. With
// several values, some services read the first, some the last, and some all of them. Parsers
// of cookies also differ on one value.
func unambiguous(h Fields, reads *rule.Reads) bool {
	for _, name := range reads.Headers {
		if len(h.Lines(name)) > 1 {
			return false
		}
	}
	for _, name := range reads.Cookies {
		if !(&cookies{h}).read(name).single {
			return false
		}
	}
	return true
}

// cookies looks up a cookie in the Cookie fields. The total size of the fields bounds the
// search.
type cookies struct{ fields Fields }

// Lookup implements headgate.Values. A value that parsers read in different ways is no value: its
// request counts under the shared key.
func (c *cookies) Lookup(name string) (string, bool) {
	read := c.read(name)
	return read.value, read.found && read.plain
}

// cookieReading is what the Cookie fields say about one cookie.
type cookieReading struct {
	value string // of the first cookie of the name, in the common form
	found bool
	plain bool // all parsers read the first cookie alike, up to the common form
	// single says that no parser can read another value elsewhere in the fields.
	single bool
}

// read reads the cookies of a name as the common parsers do: those of Python, PHP, Ruby, Node.js, nginx and Go, which
// TestCookieReaders compares. Where they differ, it clears plain or single.
func (c *cookies) read(name string) cookieReading {
	r := cookieReading{plain: true, single: true}
	for _, field := range c.fields.Lines("Cookie") {
		for field != "" {
			var pair string
			pair, field, _ = strings.Cut(field, ";")
			pair = strings.TrimLeft(pair, " \t")
			r.single = r.single && !hides(pair, name)
			sent, text, _ := strings.Cut(pair, "=")
			switch same, odd := isNamed(sent, name); {
			case odd:
				r.single = false
			case same:
				r.add(strings.Trim(text, " \t"))
			}
		}
	}
	return r
}

// add adds a cookie of the name with the value text as sent.
func (r *cookieReading) add(text string) {
	plain := isPlain(text)
	value := rule.CookieForm(text)
	r.single = r.single && plain && (!r.found || value == r.value)
	if !r.found {
		r.value, r.found, r.plain = value, true, plain
	}
}

// isNamed reports whether a cookie's name, as sent, is the name. nginx ignores case. PHP reads a dot, a space and a bracket in a
// name as "_". odd says that only some parsers read the name: PHP reads "session[a]" as an array with the name session, and
// Django removes blanks beyond ASCII.
func isNamed(sent, name string) (same, odd bool) {
	trimmed := strings.TrimRight(sent, " \t")
	if namesEqual(trimmed, name) || namesEqual(sent, name) {
		return true, false
	}
	if n := len(name); len(sent) > n && sent[n] == '[' && namesEqual(sent[:n], name) {
		return false, true
	}
	ascii := strings.TrimFunc(sent, func(c rune) bool { return c == ' ' || c == '\t' || c >= 0x80 })
	return false, len(ascii) < len(trimmed) && namesEqual(ascii, name)
}

// namesEqual compares a cookie's name with the name of a rule.
func namesEqual(sent, name string) bool {
	if len(sent) != len(name) {
		return false
	}
	for i := range len(name) {
		a, b := sent[i], name[i]
		switch {
		case a == b:
		case a|0x20 == b|0x20 && 'a' <= a|0x20 && a|0x20 <= 'z':
		case b == '_' && (a == '.' || a == ' ' || a == '['):
		default:
			return false
		}
	}
	return true
}

// hides reports whether a cookie of the name begins within pair, after a comma or a blank. nginx reads a cookie behind
// a comma, and Python's http.cookies behind a blank. For other parsers, these bytes belong to the value before them.
func hides(pair, name string) bool {
	for i := range len(pair) {
		if !separatesCookies(pair[i]) || i+1 < len(pair) && separatesCookies(pair[i+1]) {
			continue
		}
		rest := pair[i+1:]
		if len(rest) <= len(name) || !namesEqual(rest[:len(name)], name) {
			continue
		}
		if after := strings.TrimLeft(rest[len(name):], " \t"); after != "" && after[0] == '=' {
			return true
		}
	}
	return false
}

func separatesCookies(c byte) bool { return c == ',' || c == ' ' || c == '\t' }

// isPlain reports whether all parsers read a value alike, up to the common form. A blank ends an unquoted value for
// http.cookies. A backslash within quotes, and a quote without its partner, have several meanings. Bytes beyond ASCII are text
// of different encodings.
func isPlain(text string) bool {
	quoted := text != "" && text[0] == '"'
	if quoted {
		if len(text) < len(`""`) || text[len(text)-1] != '"' {
			return false
		}
		text = text[1 : len(text)-1]
	}
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || !quoted && c == ' ' || quoted && (c == '"' || c == '\\') {
			return false
		}
	}
	return true
}
