package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/guard"
)

const (
	// maxHeaderName is the bound that package rule has for names in keys.
	maxHeaderName = 128
	// tokenLetters are the characters of header names (RFC 9110, section 5.6.2).
	tokenLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
)

// headerName checks the name of a header at offset within v, and returns it in canonical form.
// It reports false if the name is invalid.
func (r *reader) headerName(v value, offset int, name, example string) (string, bool) {
	bad := strings.IndexFunc(name, func(c rune) bool { return !strings.ContainsRune(tokenLetters, c) })
	switch {
	case name == "":
		r.faultAt(v, offset, "has no header name", "write it like "+example)
	case bad >= 0:
		_, size := utf8.DecodeRuneInString(name[bad:])
		r.faultAt(v, offset+bad, fmt.Sprintf("the header name %s contains %q", quote(name), name[bad:bad+size]),
			"write only letters, digits, - and _, like "+example)
	case len(name) > maxHeaderName:
		r.faultAt(v, offset+maxHeaderName, fmt.Sprintf("the header name is %d bytes long", len(name)),
			fmt.Sprintf("use at most %d", maxHeaderName))
	default:
		return http.CanonicalHeaderKey(name), true
	}
	return "", false
}

// messageHeaderNames are headers that say how to read a message, or who sent it.
var messageHeaderNames = [...]string{
	"Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Expect", "Host",
	"Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Set-Cookie", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// isMessageHeader reports whether name is in messageHeaderNames. The name must be in canonical form.
func isMessageHeader(name string) bool { return slices.Contains(messageHeaderNames[:], name) }

// meaningOf says why a configuration cannot use a header for another purpose. The name must be
// in canonical form. The result is "" if the header has no fixed meaning.
func meaningOf(name string) string {
	switch {
	case isMessageHeader(name):
		return "says how to read the request, or who sent it"
	case name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-"):
		return "says which proxies the request passed"
	case name == guard.FieldMark:
		return "reports soft limits"
	default:
		return ""
	}
}
