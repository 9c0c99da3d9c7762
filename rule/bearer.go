package rule

import (
	"strings"

	"github.com/headgate/headgate"
)

// maxToken limits the length of bearer tokens. Servers refuse headers that are a
// little longer, and a longer token takes more time to verify.
const maxToken = 8 << 10

// bearer returns the token of the Authorization header (RFC 6750, section 2.1). It
// refuses a request with several lines, because the service may read another line.
func bearer(header headgate.Values) (token string, found bool) {
	var room [1]string
	credentials := lines(header, "Authorization", &room)
	if len(credentials) != 1 {
		return "", false
	}
	scheme, rest, _ := strings.Cut(strings.Trim(credentials[0], " \t"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token = strings.TrimLeft(rest, " ")
	if len(token) > maxToken || !isToken68(token) {
		return "", false
	}
	return token, true
}

// isToken68 reports whether text is a token68 (RFC 9110, section 11.2).
func isToken68(text string) bool {
	body := strings.TrimRight(text, "=")
	for i := range len(body) {
		switch c := body[i]; c {
		case '-', '.', '_', '~', '+', '/':
		default:
			if !isDigit(c) && !isLetter(c) {
				return false
			}
		}
	}
	return body != ""
}
