package rule

import "strings"

// Query is the query of a URL as the client sent it, without the question mark. It looks up values by their decoded names. A *Query is
// a headgate.Values.
//
// Lookup reads a query as net/url does: & separates pairs, + is a space, the first value of a name counts, and a pair with a semicolon or a
// broken escape is ignored. Other services read some queries differently: see Reads.UnclearQuery.
type Query string

// Lookup implements headgate.Values. It allocates only to decode a value with escapes. Its time is linear in the length of the query.
func (q *Query) Lookup(name string) (value string, found bool) {
	for rest := string(*q); rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		sent, text, _ := strings.Cut(pair, "=")
		if len(sent) < len(name) || !decodesTo(sent, name) || strings.IndexByte(pair, ';') >= 0 {
			continue
		}
		if strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '+') < 0 {
			return text, true
		}
		if value, ok := decodeQuery(text); ok {
			return value, true
		}
	}
	return "", false
}

// decodesTo reports whether text, which is part of a query, decodes to name.
func decodesTo(text, name string) bool {
	if text == name {
		return strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '+') < 0
	}
	at := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '+':
			c = ' '
		case c != '%':
		case !isEscaped(text[i:]):
			return false
		default:
			c = unescaped(text[i:])
			i += 2
		}
		if at == len(name) || name[at] != c {
			return false
		}
		at++
	}
	return at == len(name)
}

// decodeQuery decodes a name or a value of a query. It reports false for a broken escape.
func decodeQuery(text string) (string, bool) {
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '+':
			c = ' '
		case c != '%':
		case !isEscaped(text[i:]):
			return "", false
		default:
			c = unescaped(text[i:])
			i += 2
		}
		decoded = append(decoded, c)
	}
	return string(decoded), true
}

// isEscaped reports whether text begins with % and two hexadecimal digits.
func isEscaped(text string) bool { return len(text) > 2 && isHex(text[1]) && isHex(text[2]) }

// unescaped is the byte of the escape at the beginning of text.
func unescaped(text string) byte { return byte(hexDigit(text[1])<<4 | hexDigit(text[2])) }
