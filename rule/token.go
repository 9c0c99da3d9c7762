package rule

// faultyTokenByte returns the position of the first invalid byte in a token (RFC 9110,
// section 5.6.2), or -1. Names of headers, cookies and methods are tokens.
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

// canonicalHeader returns the spelling for header lookups: X-Client-Id for
// x-client-ID. canonicalHeader equals the function of net/textproto. This package does not import
// net/textproto, because that would link package net.
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
