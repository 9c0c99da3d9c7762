package refusal

import (
	"unicode"
	"unicode/utf8"
)

// escape says how values are written into a text.
type escape uint8

const (
	escapeOther escape = iota // only numbers
	escapePlain
	escapeHTML
	escapeJSON
	escapeXML
	escapeHeader
)

// appendEscaped appends a value for its place. It cuts the value at maxValue bytes.
func appendEscaped[T string | []byte](b []byte, value T, p *piece) []byte {
	text := value
	if len(text) > maxValue {
		text = text[:maxValue]
	}
	if p.esc == escapeHeader {
		for i := range len(text) {
			b = appendFieldByte(b, text[i], p.field >= firstSent)
		}
		return b
	}
	for len(text) > 0 {
		var c rune
		var size int
		switch from := any(text).(type) {
		case string:
			c, size = utf8.DecodeRuneInString(from)
		case []byte:
			c, size = utf8.DecodeRune(from)
		}
		text = text[size:]
		b = appendRune(b, c, p.esc)
	}
	return b
}

const hexDigits = "0123456789ABCDEF"

// appendRune appends a character. Control characters and those that change the direction of a text become U+FFFD.
func appendRune(b []byte, c rune, e escape) []byte {
	if !unicode.IsPrint(c) {
		return utf8.AppendRune(b, utf8.RuneError)
	}
	switch c {
	case '<', '>', '&', '"', '\'', '`', '\\':
	default:
		return utf8.AppendRune(b, c)
	}
	switch e {
	case escapeHTML, escapeXML: // &#x3C; means the same in both.
		return append(b, '&', '#', 'x', hexDigits[c>>4], hexDigits[c&15], ';')
	case escapeJSON:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	default:
		return utf8.AppendRune(b, c)
	}
}

// appendFieldByte appends a byte of a header field. Values of a client keep only bytes without a meaning in any field or URL.
func appendFieldByte(b []byte, c byte, sent bool) []byte {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
		return append(b, c)
	case !sent && ' ' <= c && c <= '~' && c != '"' && c != '\\' && c != '%':
		return append(b, c)
	default:
		return append(b, '%', hexDigits[c>>4], hexDigits[c&15])
	}
}
