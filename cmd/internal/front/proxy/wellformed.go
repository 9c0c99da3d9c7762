package proxy

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/rule"
)

// The reasons why a request cannot be forwarded.
const (
	badRequestLine = "Invalid method, host or Content-Length."
	badFieldValue  = "A header field begins or ends with a blank."
	badFold        = "A header or trailer line begins with a blank (obsolete line folding), a length is malformed, or Transfer-Encoding " +
		"is beside Content-Length or in HTTP/1.0."
	badHost = "The request's host is not a valid host name."
)

// malformed returns why a request cannot be forwarded unambiguously, or "". It sets r.Host
// to the canonical host, which rules match and the service receives. fallback is the host
// for a request without one.
func malformed(r *http.Request, l *http1.List, fallback string) string {
	switch {
	case unwritable(r, l):
		return badRequestLine
	case connOf(r).isMalformed(r):
		return badFold
	case !trimmed(l):
		return badFieldValue
	}
	joinCookies(l)
	l.Delete("Host") // HTTP/2 keeps a Host field beside :authority, which is the host.
	host, ok := canonicalHost(r.Host)
	if !ok {
		return badHost
	}
	if host == "" {
		host = fallback // The transport would also use the upstream's host.
	}
	r.Host = host
	return ""
}

// joinCookies makes one Cookie line of several. Services differ: some join the lines by commas, or
// read one of them. A client of HTTP/1 sends one line (RFC 6265, section 5.4).
func joinCookies(l *http1.List) {
	if lines := l.Lines("Cookie"); len(lines) > 1 {
		l.Put("Cookie", strings.Join(lines, "; "))
	}
}

// trimmed reports whether no value begins or ends with a blank. HTTP/2 forbids such
// values (RFC 9113, section 8.2.1), but Go's server accepts them, and the HTTP/1
// transport trims them. The service would then see another value than the rules.
func trimmed(l *http1.List) bool {
	for i := range l.Len() {
		_, v := l.Line(i)
		if n := len(v); n > 0 && (isBlank(v[0]) || isBlank(v[n-1])) {
			return false
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// canonicalHost returns the form of a host that rules match and the service receives. An
// internationalized name becomes punycode, as in the transport.
func canonicalHost(sent string) (host string, ok bool) {
	if !isASCII(sent) {
		if sent, ok = punycode(sent); !ok {
			return "", false
		}
	}
	name, port, ok := rule.ParseHost(sent)
	if !ok {
		return "", false
	}
	if plain := len(name) + len(":") + len(port); name == sent ||
		port != "" && len(sent) == plain && strings.HasPrefix(sent, name) && strings.HasSuffix(sent, port) {
		return sent, true // A canonical host is returned as is, to avoid an allocation.
	}
	return rule.JoinHost(name, port), true
}

// punycode converts an internationalized host to the form of DNS and certificates.
func punycode(sent string) (ascii string, ok bool) {
	if !utf8.ValidString(sent) {
		return "", false // The IDNA profile would replace the bytes with U+FFFD.
	}
	name, port := sent, ""
	if colon := strings.LastIndexByte(sent, ':'); colon >= 0 {
		name, port = sent[:colon], sent[colon:]
	}
	name, err := idna.Lookup.ToASCII(name)
	return name + port, err == nil
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
