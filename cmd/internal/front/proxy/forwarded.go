package proxy

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// The X-Forwarded fields, in canonical spelling.
const (
	fieldForwardedFor   = "X-Forwarded-For"
	fieldForwardedHost  = "X-Forwarded-Host"
	fieldForwardedProto = "X-Forwarded-Proto"
)

var forwardedNames = []string{fieldForwardedFor, fieldForwardedHost, fieldForwardedProto}

// forwardedFields are the values of the X-Forwarded fields that a client sent.
type forwardedFields struct{ chain, host, proto []string }

func forwardedOf(h http.Header) forwardedFields {
	return forwardedFields{h[fieldForwardedFor], h[fieldForwardedHost], h[fieldForwardedProto]}
}

// set sets the X-Forwarded fields of the request to the upstream, whose header is out. from
// is the peer. For a trusted peer it keeps the values and appends the peer's address to the chain. For any
// other peer it writes what the proxy itself saw of r.
func (f forwardedFields) set(out http.Header, r *http.Request, from netip.Addr, trusts func(netip.Addr) bool, texts *[3]string) {
	if trusts == nil || !trusts(from) {
		forwardedFields{}.setFrom(from, out, r, texts)
		return
	}
	f.setFrom(from, out, r, texts)
}

// setFrom sets the fields for a peer of which f is trusted.
func (f forwardedFields) setFrom(from netip.Addr, out http.Header, r *http.Request, texts *[3]string) {
	*texts = [3]string{strings.Join(f.chain, ", "), r.Host, "http"}
	switch {
	case !from.IsValid(): // A peer on a unix socket has no address.
	case len(f.chain) > 0:
		texts[0] += ", " + from.String()
	default:
		texts[0] = from.String()
	}
	if r.TLS != nil {
		texts[2] = "https"
	}
	if texts[0] == "" {
		delete(out, fieldForwardedFor)
	} else {
		out[fieldForwardedFor] = texts[0:1:1]
	}
	out[fieldForwardedHost], out[fieldForwardedProto] = f.host, f.proto
	if len(f.host) == 0 {
		out[fieldForwardedHost] = texts[1:2:2]
	}
	if len(f.proto) == 0 {
		out[fieldForwardedProto] = texts[2:3:3]
	}
}

// dropSpoofedHeaders removes the headers in which a peer names its user or describes its client,
// unless the peer is trusted; the X-Forwarded fields that the proxy has written stay. From every
// peer it removes names that a CGI-like service would confuse with these headers, with
// headers that a rule reads, or with marks. X_Forwarded_For, for example, can be confused
// with X-Forwarded-For. The marks in out are the guard's own.
func dropSpoofedHeaders(out http.Header, from netip.Addr, id *rule.Identity, read, marks []string) {
	var users []string
	if id != nil {
		users = id.UserIPHeaders
	}
	trusted := id.Trusts(from)
	if !trusted {
		for _, name := range users {
			delete(out, name)
		}
	}
	for _, name := range read {
		if plain := plainName(name); plain != name && !slices.Contains(read, plain) {
			delete(out, plain)
		}
	}
	for name := range out {
		plain := plainName(name)
		if plain == name {
			if !trusted && describesClient(name) && !slices.Contains(forwardedNames, name) {
				delete(out, name)
			}
			continue
		}
		same := func(reserved string) bool { return name != reserved && confusable(name, reserved) }
		if describesClient(plain) && !slices.Contains(users, name) || slices.ContainsFunc(users, same) ||
			slices.ContainsFunc(read, same) && !slices.Contains(read, name) ||
			slices.ContainsFunc(marks, same) && !slices.Contains(marks, name) {
			delete(out, name)
		}
	}
}

// peer returns the address of the connection's other end. A unix socket gives the zero
// Addr.
func peer(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
