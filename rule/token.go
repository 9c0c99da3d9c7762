package rule

// faultyTokenByte gives the position of the first byte that cannot stand in a
// token (RFC 9110, section 5.6.2): names of headers, cookies and methods are
// tokens. It is -1 when there is none.
func faultyTokenByte(text string) int {
	for i := range len(text) {
		if !isTokenByte(text[i]) {
			return i
		}
	}
	return -1
}

func isTokenByte(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	default:
		return isDigit(c) || isLetter(c)
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// canonicalHeader gives the spelling under which headers are looked up:
// x-client-ID is X-Client-Id. It is the one of net/textproto, which this package
// does not import, since it brings all of package net.
func canonicalHeader(name string) string {
	text := []byte(name)
	first := true
	for i, c := range text {
		if isLetter(c) {
			if first {
				text[i] = c &^ 0x20
			} else {
				text[i] = c | 0x20
			}
		}
		first = c == '-'
	}
	return string(text)
}
