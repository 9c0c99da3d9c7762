package accesslog

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// cut ends a truncated value.
const cut = "..."

// plain reports whether neither format escapes c.
func plain(c byte) bool { return c >= ' ' && c < 0x7f && c != '"' && c != '\\' }

// plainRun returns the length of the plain bytes at the start of s. It checks eight bytes at
// a time, because nearly all text from clients is plain.
func plainRun(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		t := s[i : i+8]
		if !plainWord(uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56) {
			break
		}
	}
	for i < len(s) && plain(s[i]) {
		i++
	}
	return i
}

// plainWord reports whether the eight bytes of w are plain. A byte of x is below n if x-n
// borrows and the byte's high bit was not set before.
func plainWord(w uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	below := (w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash
	above := (w + ones) | w // The high bit is set for bytes from 0x7f on.
	return (below|above)&high == 0
}

// appendEscaped writes text as Apache does: \" and \\, and \xHH for bytes outside printable
// ASCII. most bounds the written bytes, without cut.
func appendEscaped(b []byte, s string, most int) []byte {
	const hex = "0123456789ABCDEF"
	for end := len(b) + most; s != ""; {
		run := plainRun(s)
		if len(b)+run > end {
			return append(append(b, s[:end-len(b)]...), cut...)
		}
		b = append(b, s[:run]...)
		if s = s[run:]; s == "" {
			break
		}
		if len(b)+4 > end {
			return append(b, cut...)
		}
		if c := s[0]; c == '"' || c == '\\' {
			b = append(b, '\\', c)
		} else {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		}
		s = s[1:]
	}
	return b
}

// appendQuoted writes a JSON string. It escapes unprintable characters and replaces invalid
// UTF-8 with U+FFFD. most bounds the bytes between the quotes, without cut.
func appendQuoted(b []byte, s string, most int) []byte {
	const widest = 12 // \uHHHH\uHHHH
	b = append(b, '"')
	for end := len(b) + most; s != ""; {
		run := plainRun(s)
		if len(b)+run > end {
			b = append(append(b, s[:end-len(b)]...), cut...)
			break
		}
		b = append(b, s[:run]...)
		if s = s[run:]; s == "" {
			break
		}
		if len(b)+widest > end {
			b = append(b, cut...)
			break
		}
		r, size := utf8.DecodeRuneInString(s)
		b = appendRune(b, r)
		s = s[size:]
	}
	return append(b, '"')
}

func appendRune(b []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case strconv.IsPrint(r):
		return utf8.AppendRune(b, r)
	case r < 0x10000:
		return appendHex(b, r)
	default:
		first, second := utf16.EncodeRune(r)
		return appendHex(appendHex(b, first), second)
	}
}

func appendHex(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
