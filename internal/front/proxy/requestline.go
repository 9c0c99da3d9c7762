package proxy

import (
	"net/http"
	"strings"
)

// unwritable tells whether a request of HTTP/2 has a method, a host or a length that
// HTTP/1 has no way to write. The server checks those of HTTP/1 itself.
func unwritable(r *http.Request) bool {
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
	return strings.ContainsAny(r.Host, " /\\?#@") || !isLength(r.Header["Content-Length"])
}

// isLength takes one number, or none at all.
func isLength(lines []string) bool {
	if len(lines) == 0 {
		return true
	}
	return len(lines) == 1 && lines[0] != "" && strings.Trim(lines[0], "0123456789") == ""
}

// writableQuery gives a query as it came, with the spaces escaped that HTTP/2 lets
// through: a server of HTTP/1 would take what follows one for the version.
func writableQuery(query string) string { return strings.ReplaceAll(query, " ", "%20") }
