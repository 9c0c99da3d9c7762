package proxy

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// unwritable reports whether an HTTP/2 request has a method, host or length that HTTP/1
// cannot express. net/http checks HTTP/1 requests itself.
func unwritable(r *http.Request, l *http1.List) bool {
	if r.ProtoMajor < 2 {
		return false
	}
	for i := range len(r.Method) {
		switch c := r.Method[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0: // RFC 9110, section 5.6.2.
			return true
		}
	}
	return strings.ContainsAny(r.Host, " /\\?#@") || !isLength(l.Lines("Content-Length"))
}

// isLength reports whether lines are one number, or empty.
func isLength(lines []string) bool {
	if len(lines) == 0 {
		return true
	}
	return len(lines) == 1 && lines[0] != "" && strings.Trim(lines[0], "0123456789") == ""
}

// writableQuery escapes the spaces in a query. HTTP/2 lets them through, but an HTTP/1
// server would parse the text after a space as the version.
func writableQuery(query string) string { return strings.ReplaceAll(query, " ", "%20") }
