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
	// maxHeaderName is what package rule allows of names in keys.
	maxHeaderName = 128
	// tokenLetters are what names of headers are made of (RFC 9110, section 5.6.2).
	tokenLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
)

// headerName checks the name of a header that stands at offset within v, and gives
// it in the spelling under which headers are looked up. It reports false when there
// can be no such header.
func (r *reader) headerName(v value, offset int, name, example string) (string, bool) {
	bad := strings.IndexFunc(name, func(c rune) bool { return !strings.ContainsRune(tokenLetters, c) })
	switch {
	case name == "":
		r.faultAt(v, offset, "has no name of a header", "write it like "+example)
	case bad >= 0:
		_, size := utf8.DecodeRuneInString(name[bad:])
		r.faultAt(v, offset+bad, fmt.Sprintf("the header's name %s has %q in it", quote(name), name[bad:bad+size]),
			"write only letters, digits, - and _, like "+example)
	case len(name) > maxHeaderName:
		r.faultAt(v, offset+maxHeaderName, fmt.Sprintf("the header's name is %d bytes long", len(name)),
			fmt.Sprintf("use at most %d", maxHeaderName))
	default:
		return http.CanonicalHeaderKey(name), true
	}
	return "", false
}

// messageHeaderNames are headers that say how a message travels or who sends it.
var messageHeaderNames = [...]string{
	"Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Expect", "Host",
	"Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Set-Cookie", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// isMessageHeader reports whether a header, in canonical spelling, is none of which
// a configuration can make something else.
func isMessageHeader(name string) bool { return slices.Contains(messageHeaderNames[:], name) }

// meaningOf says what a header, in canonical spelling, means to every service, so
// that a configuration cannot make something else of it; "" is nothing.
func meaningOf(name string) string {
	switch {
	case isMessageHeader(name):
		return "says how the request is to be read, or who sends it"
	case name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-"):
		return "says which way the request came"
	case name == guard.FieldMark:
		return "tells of soft limits"
	default:
		return ""
	}
}
