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
// shared. The error is ErrHost, ErrPath or that of cleanPath.
func identify(req *headgate.Request, r *http.Request, needs rule.Needs, resolves bool) error {
	// Fail reads these, whatever the error.
	req.Method, req.Header, req.Cookie = r.Method, headers(r.Header), cookies(r.Header)
	if r.URL.Opaque != "" { // "http:x" has no path, and services make one of it.
		return ErrPath
	}
	if needs&rule.NeedPlainParameters != 0 && hasEscapedSemicolon(r.URL.RawPath) {
		return ErrPath
	}
	clean, err := cleanTarget(r, resolves)
	if err != nil {
		return err
	}
	req.Path = clean
	if needs&rule.NeedHost != 0 {
		var ok bool
		if req.Host, _, ok = rule.ParseHost(strings.Trim(r.Host, " \t")); !ok {
			return ErrHost
		}
	}
	if needs&rule.NeedIP != 0 {
		req.IP = peer(r.RemoteAddr)
	}
	if needs&rule.NeedSubject != 0 {
		req.Subject = subject(r.TLS)
	}
	return nil
}

// cleanTarget gives the path of a request: "*" for OPTIONS *, which asks about the
// service as a whole, and else that of cleanPath.
func cleanTarget(r *http.Request, resolves bool) (clean string, err error) {
	if r.Method == http.MethodOptions && r.URL.Path == "*" {
		return r.URL.Path, nil
	}
	return cleanPath(r.URL.Path, r.URL.RawPath, resolves)
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

// headers looks up the lines of a field. Names are canonical.
type headers http.Header

// Lookup implements headgate.Values. Blanks around a value are no part of it (RFC 9110,
// section 5.5): servers of HTTP/2 leave them in, and clients of HTTP/1 trim them.
func (h headers) Lookup(name string) (string, bool) {
	if values := h[name]; len(values) > 0 {
		return strings.Trim(values[0], " \t"), true
	}
	return "", false
}

// Lines implements headgate.Lines.
func (h headers) Lines(name string) []string { return h[name] }
