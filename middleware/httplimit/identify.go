package httplimit

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Fields look up the header fields of a request. Names are in canonical form. Lookup trims the blanks around a value.
type Fields interface {
	headgate.Values
	headgate.Lines
}

// identify fills a zero req from r for the rules, without copying values that can be
// shared. Header and Cookie are set. The error is ErrHost, ErrPath or an error of rule.CleanPath.
func identify(req *headgate.Request, r *http.Request, needs rule.Needs, resolves bool) error {
	req.Method, req.Authority = r.Method, r.Host
	req.Length = max(0, r.ContentLength)
	if r.URL.Opaque != "" { // "http:x" has no path, but services derive one.
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

// cleanTarget returns the path of a request. For OPTIONS *, which is about the service
// itself, the path is "*".
func cleanTarget(r *http.Request, resolves bool) (clean string, err error) {
	if r.Method == http.MethodOptions && r.URL.Path == "*" {
		return r.URL.Path, nil
	}
	return rule.CleanPath(r.URL.Path, r.URL.RawPath, resolves)
}

// hasEscapedSemicolon reports whether the path has an escaped semicolon. After decoding it
// looks like the start of a parameter, but for services that read parameters it belongs
// to the segment.
func hasEscapedSemicolon(raw string) bool {
	return strings.Contains(raw, "%3b") || strings.Contains(raw, "%3B")
}

// peer returns the address of the connection's other end. remote has a port, except when an
// earlier handler has rewritten it. An invalid address gives the zero Addr, and rules then
// count the request as one without an address.
func peer(remote string) netip.Addr {
	if at, usual := peer4(remote); usual {
		return at
	}
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

// peer4 parses an address of IPv4 with a port, in a third of the time of netip.ParseAddr: many rules need the peer of each request.
func peer4(remote string) (at netip.Addr, ok bool) {
	var ip [4]byte
	n, digits, octet := 0, 0, 0
	for i := range len(remote) {
		switch c := remote[i]; {
		case '0' <= c && c <= '9':
			if digits++; digits > 3 || digits > 1 && octet == 0 {
				return netip.Addr{}, false
			}
			octet = octet*10 + int(c-'0')
		case digits == 0 || octet > 255 || n > 3:
			return netip.Addr{}, false
		case c == '.' && n < 3:
			ip[n] = byte(octet)
			n, digits, octet = n+1, 0, 0
		case c == ':' && n == 3 && strings.IndexByte(remote[i+1:], ':') < 0:
			ip[3] = byte(octet)
			return netip.AddrFrom4(ip), true
		default:
			return netip.Addr{}, false
		}
	}
	return netip.Addr{}, false
}

// subject returns the subject of the client's certificate, or "" without a certificate that
// TLS has verified. It allocates.
func subject(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.String()
}

// headers looks up header values. Names must be in canonical form.
type headers http.Header

// Lookup implements headgate.Values. It trims the blanks around a value, which do not belong
// to it (RFC 9110, section 5.5). HTTP/2 servers keep such blanks.
func (h headers) Lookup(name string) (string, bool) {
	values := h[name]
	if len(values) == 0 {
		return "", false
	}
	value := values[0]
	if n := len(value); n > 0 && (isBlank(value[0]) || isBlank(value[n-1])) { // Seldom: strings.Trim costs as much as the lookup.
		value = strings.Trim(value, " \t")
	}
	return value, true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// Lines implements headgate.Lines.
func (h headers) Lines(name string) []string { return h[name] }
