package proxy

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/headgate/headgate/rule"
)

// The reasons for which a request cannot be forwarded as it came.
const (
	badRequestLine = "The method or the length of the request cannot be written in HTTP/1."
	badFieldValue  = "A header field begins or ends with a blank."
	badFold        = "A line of the header or trailer continues the line before, or a length has too many digits."
	badHost        = "The host of the request is not a host name."
)

// malformed says why a request cannot be forwarded with one meaning, "" when it can.
// It writes the canonical host into r: rules match that, and the service gets it.
// fallback is the host of a request that has none.
func malformed(r *http.Request, fallback string) string {
	switch {
	case unwritable(r):
		return badRequestLine
	case connOf(r).isFolded(r):
		return badFold
	case !trimmed(r.Header):
		return badFieldValue
	}
	delete(r.Header, "Host") // HTTP/2 leaves it beside the :authority, which is the host.
	host, ok := canonicalHost(r.Host)
	if !ok {
		return badHost
	}
	if host == "" {
		host = fallback // As the transport would.
	}
	r.Host = host
	return ""
}

// trimmed reports whether no value begins or ends with a blank. HTTP/2 forbids such a
// value (RFC 9113, section 8.2.1), Go's server lets it through, and the transport of
// HTTP/1 trims it: the service would see another value than the rules.
func trimmed(h http.Header) bool {
	for _, values := range h {
		for _, v := range values {
			if n := len(v); n > 0 && (isBlank(v[0]) || isBlank(v[n-1])) {
				return false
			}
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// canonicalHost gives the one form of a host that rules match and the service gets. An
// international name becomes punycode, which is what the transport sends.
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
		return sent, true // It is canonical, and joining it again would allocate.
	}
	return rule.JoinHost(name, port), true
}

// punycode gives the form of an international host that DNS and certificates have.
func punycode(sent string) (ascii string, ok bool) {
	if !utf8.ValidString(sent) {
		return "", false // The profile would take it for U+FFFD.
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
