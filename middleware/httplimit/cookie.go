package httplimit

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate/rule"
)

// unambiguous reports whether every header and cookie that a rule reads has one value. With
// several values, some services read the first, some the last, and some all of them.
func unambiguous(h http.Header, reads *rule.Reads) bool {
	for _, name := range reads.Headers {
		if len(h[name]) > 1 {
			return false
		}
	}
	for _, name := range reads.Cookies {
		if _, _, single := cookies(h).find(name); !single {
			return false
		}
	}
	return true
}

// cookies looks up a cookie in the Cookie fields. The total size of the fields bounds the
// search.
type cookies http.Header

// Lookup implements headgate.Values.
func (c cookies) Lookup(name string) (string, bool) {
	value, found, _ := c.find(name)
	return value, found
}

// find returns the first cookie with the given name, ignoring case. The value is in the form
// that most services read: without surrounding blanks and quotes, and with %XX decoded. A
// service that does not decode sees another value, but never that of another client.
//
// single is false if a later cookie of the same name has another value. single is also
// false for an escape in a quoted string (RFC 2109), which few services know, and for a cookie
// after a comma.
func (c cookies) find(name string) (value string, found, single bool) {
	single = true
	for _, field := range c["Cookie"] {
		for field != "" {
			var pair string
			pair, field, _ = strings.Cut(field, ";")
			single = single && !afterComma(pair, name)
			sent, text, _ := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
			if !strings.EqualFold(strings.TrimRight(sent, " \t"), name) {
				continue
			}
			text = strings.Trim(text, " \t")
			if bare := unquote(text); len(bare) < len(text) {
				single = single && strings.IndexByte(bare, '\\') < 0
				text = bare
			}
			if text = unescape(text); found {
				single = single && text == value
			} else {
				value, found = text, true
			}
		}
	}
	return value, found, single
}

// afterComma reports whether a cookie of the name begins after a comma in pair. nginx reads
// a cookie there; for most services the comma belongs to the value before it.
func afterComma(pair, name string) bool {
	_, rest, found := strings.Cut(pair, ",")
	for found {
		var piece string
		piece, rest, found = strings.Cut(rest, ",")
		if sent, _, named := strings.Cut(piece, "="); named && strings.EqualFold(strings.Trim(sent, " \t"), name) {
			return true
		}
	}
	return false
}

// unquote removes the quotes around a cookie's value, which have no meaning.
func unquote(v string) string {
	if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// unescape decodes every %XX once and keeps any other %. It allocates only if v has a %.
func unescape(v string) string {
	if !strings.Contains(v, "%") {
		return v
	}
	var b strings.Builder
	b.Grow(len(v))
	for i := 0; i < len(v); i++ {
		high, low := -1, -1
		if v[i] == '%' && i+2 < len(v) {
			high, low = hexDigit(v[i+1]), hexDigit(v[i+2])
		}
		if high < 0 || low < 0 {
			b.WriteByte(v[i])
			continue
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	return b.String()
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	default:
		return -1
	}
}
