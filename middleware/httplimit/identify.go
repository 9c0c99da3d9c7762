package httplimit

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// identify reads r into a zero req, for the rules, without copying what can be
// shared. The error is that of cleanPath.
func identify(req *headgate.Request, r *http.Request, needs rule.Needs, resolves bool) error {
	if r.URL.Opaque != "" { // "http:x" has no path, and services make one of it.
		return ErrPath
	}
	clean, err := cleanPath(r.URL.Path, r.URL.RawPath, resolves)
	if err != nil {
		return err
	}
	req.Method, req.Path = r.Method, clean
	if needs&rule.NeedHost != 0 {
		req.Host = cleanHost(r.Host)
	}
	if needs&rule.NeedIP != 0 {
		req.IP = peer(r.RemoteAddr)
	}
	req.Header, req.Cookie = headers(r.Header), cookies(r.Header)
	if needs&rule.NeedSubject != 0 {
		req.Subject = subject(r.TLS)
	}
	return nil
}

// peer gives the address of the other end of the connection, with its port or,
// where a handler before us has written it, without. The zero Addr stands for what
// is no address; rules then count it as a request without one.
func peer(remote string) netip.Addr {
	host := remote
	if inner, bracketed := strings.CutPrefix(remote, "["); bracketed {
		host, _, _ = strings.Cut(inner, "]")
	} else if i := strings.IndexByte(remote, ':'); i >= 0 && strings.IndexByte(remote[i+1:], ':') < 0 {
		host = remote[:i]
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	if at.Is4() {
		return at
	}
	return at.Unmap().WithZone("")
}

// subject gives whom the client's certificate names: "" when there is none, or
// none that a chain of TLS has verified. It takes some allocations.
func subject(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.String()
}

// cleanHost gives the host in lower case, without port and without the dot that
// ends a fully written name.
func cleanHost(host string) string {
	if isCleanHost(host) {
		return host
	}
	if inner, found := strings.CutPrefix(host, "["); found {
		host, _, _ = strings.Cut(inner, "]")
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isCleanHost finds the names that are clean as they come, which most are.
func isCleanHost(host string) bool {
	for i := range len(host) {
		if c := host[i]; 'A' <= c && c <= '[' || c == ':' || c >= 0x80 {
			return false
		}
	}
	return host == "" || host[len(host)-1] != '.'
}

// headers looks up the lines of a field. Names are canonical.
type headers http.Header

// Lookup implements headgate.Values.
func (h headers) Lookup(name string) (string, bool) {
	if values := h[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// Lines implements headgate.Lines.
func (h headers) Lines(name string) []string { return h[name] }

// cookies looks up the first cookie of a name in the Cookie fields. The size of
// all fields together bounds the search.
type cookies http.Header

// Lookup implements headgate.Values.
func (c cookies) Lookup(name string) (string, bool) {
	for _, field := range c["Cookie"] {
		for field != "" {
			var pair string
			pair, field, _ = strings.Cut(field, ";")
			found, value, _ := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
			if strings.TrimRight(found, " \t") == name {
				return unquote(strings.Trim(value, " \t")), true
			}
		}
	}
	return "", false
}

// unquote drops the quotes of a cookie's value, which say nothing.
func unquote(v string) string {
	if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}
