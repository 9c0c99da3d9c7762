package proxy

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// The fields that say from where a request came, in canonical spelling.
const (
	fieldForwardedFor   = "X-Forwarded-For"
	fieldForwardedHost  = "X-Forwarded-Host"
	fieldForwardedProto = "X-Forwarded-Proto"
)

var forwardedNames = []string{fieldForwardedFor, fieldForwardedHost, fieldForwardedProto}

// setForwarded says from where the request came. What a trusted peer says of that
// is kept, and its own address added to the chain; else the fields are written
// anew, and say what this proxy saw. The reverse proxy has removed them from
// pr.Out, and Forwarded with them.
func setForwarded(pr *httputil.ProxyRequest, trusts func(netip.Addr) bool) {
	from, in, out := peer(pr.In.RemoteAddr), pr.In.Header, pr.Out.Header
	trusted := trusts != nil && trusts(from)
	var chain []string
	if trusted {
		chain = in[fieldForwardedFor]
	}
	switch {
	case !from.IsValid() && len(chain) > 0:
		out[fieldForwardedFor] = []string{strings.Join(chain, ", ")}
	case !from.IsValid(): // A peer on a unix socket has no address to tell of.
	case len(chain) > 0:
		out[fieldForwardedFor] = []string{strings.Join(chain, ", ") + ", " + from.String()}
	default:
		out[fieldForwardedFor] = []string{from.String()}
	}
	proto := "http"
	if pr.In.TLS != nil {
		proto = "https"
	}
	for _, field := range [...]struct{ name, seen string }{{fieldForwardedHost, pr.In.Host}, {fieldForwardedProto, proto}} {
		if told := in[field.name]; trusted && len(told) > 0 {
			out[field.name] = told
		} else {
			out[field.name] = []string{field.seen}
		}
	}
}

// dropImpostors removes the fields by which a peer that is not trusted says who its
// user is, and from every peer the fields that a service may take for them, for those
// of setForwarded, or for a header that a rule reads: X_Forwarded_For for
// X-Forwarded-For.
func dropImpostors(out http.Header, from netip.Addr, id *rule.Identity, read []string) {
	var users []string
	if id != nil {
		users = id.UserIPHeaders
	}
	if !id.Trusts(from) {
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
			continue
		}
		same := func(reserved string) bool { return name != reserved && plain == plainName(reserved) }
		if slices.ContainsFunc(forwardedNames, same) || slices.ContainsFunc(users, same) ||
			slices.ContainsFunc(read, same) && !slices.Contains(read, name) {
			delete(out, name)
		}
	}
}

// peer gives the address of the other end of the connection. The zero Addr stands
// for what is no address: a unix socket.
func peer(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
