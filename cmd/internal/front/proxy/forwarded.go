package proxy

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/rule"
)

// The X-Forwarded fields, in canonical spelling.
const (
	fieldForwardedFor   = "X-Forwarded-For"
	fieldForwardedHost  = "X-Forwarded-Host"
	fieldForwardedProto = "X-Forwarded-Proto"
)

var forwardedNames = []string{fieldForwardedFor, fieldForwardedHost, fieldForwardedProto}

// setForwarded sets the X-Forwarded fields of the request to the upstream, from those that the client sent. from
// is the peer. For a trusted peer it keeps the values and appends the peer's address to the chain. For any
// other peer it writes what the proxy itself saw of r.
func setForwarded(l *http1.List, r *http.Request, from address, trusts func(netip.Addr) bool) {
	if trusts == nil || !trusts(from.Addr) {
		for _, name := range forwardedNames {
			l.Delete(name)
		}
	}
	if chain := l.Lines(fieldForwardedFor); from.IsValid() { // A peer on a unix socket has no address.
		text := from.String()
		if len(chain) > 0 {
			text = strings.Join(chain, ", ") + ", " + text
		}
		l.Put(fieldForwardedFor, text)
	} else if text := strings.Join(chain, ", "); text != "" {
		l.Put(fieldForwardedFor, text)
	} else {
		l.Delete(fieldForwardedFor)
	}
	if !l.Has(fieldForwardedHost) {
		l.Add(fieldForwardedHost, r.Host)
	}
	if l.Has(fieldForwardedProto) {
		return
	}
	if r.TLS != nil {
		l.Add(fieldForwardedProto, "https")
	} else {
		l.Add(fieldForwardedProto, "http")
	}
}

// dropSpoofedHeaders removes the headers in which a peer names its user or describes its client,
// unless the peer is trusted; the X-Forwarded fields that the proxy has written stay. From every
// peer it removes names that a CGI-like service would confuse with these headers, with
// headers that a rule reads, or with marks. X_Forwarded_For, for example, can be confused
// with X-Forwarded-For. The marks in l are the guard's own.
func dropSpoofedHeaders(l *http1.List, from netip.Addr, id *rule.Identity, read, marks []string) {
	var users []string
	if id != nil {
		users = id.UserIPHeaders
	}
	trusted := id.Trusts(from)
	if !trusted {
		for _, name := range users {
			l.Delete(name)
		}
	}
	for _, name := range read {
		if plain := plainName(name); plain != name && !slices.Contains(read, plain) {
			l.Delete(plain)
		}
	}
	l.DeleteFunc(func(name string) bool {
		plain := plainName(name)
		if plain == name {
			return !trusted && describesClient(name) && !slices.Contains(forwardedNames, name)
		}
		same := func(reserved string) bool { return name != reserved && confusable(name, reserved) }
		return describesClient(plain) && !slices.Contains(users, name) || slices.ContainsFunc(users, same) ||
			slices.ContainsFunc(read, same) && !slices.Contains(read, name) ||
			slices.ContainsFunc(marks, same) && !slices.Contains(marks, name)
	})
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
