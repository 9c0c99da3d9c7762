package rule

import "strings"

// CookieForm returns the form of a cookie's value that all readings of the value share: without surrounding blanks and quotes,
// and with %XX decoded. Some parsers do only a part of this. A space becomes "+", because Rack reads "+" as a space. A parser
// that does not decode sees another value, but never that of another client. It allocates only if text has a % or a space.
func CookieForm(text string) string {
	return DecodedCookieForm(unescape(strings.Trim(text, "\" \t")))
}

// DecodedCookieForm returns CookieForm of a value whose %XX are decoded already, such as one that a program sends to the decision
// service.
func DecodedCookieForm(text string) string {
	const around = "\" \t+"
	text = strings.Trim(text, around)
	if strings.IndexByte(text, ' ') < 0 {
		return text
	}
	return strings.ReplaceAll(text, " ", "+")
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
