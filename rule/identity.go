package rule

import (
	"net/netip"

	"github.com/headgate/headgate"
)

// Identity finds the client of a request and knows which peers are trusted. Identity is
// immutable and safe for concurrent use. A nil Identity trusts no peer.
type Identity struct {
	// TrustedProxies are the peers that may send X-Forwarded-For and user-IP headers.
	// TrustUnix also trusts peers on Unix sockets, which have no address. Write IPv4
	// networks as IPv4: an IPv4-mapped address counts as IPv4.
	TrustedProxies []netip.Prefix
	TrustUnix      bool
	// UserIPHeaders name the headers that contain the user's address, in canonical
	// spelling. The first header that the request has is used.
	UserIPHeaders []string
	// Regions finds the region of an address. nil finds no region.
	Regions Regions
	// Tokens verifies bearer tokens. nil verifies no token.
	Tokens Tokens
}

// Regions finds the region of an address. Regions is safe for concurrent use.
type Regions interface {
	// Region returns the ISO 3166-1 code, such as "NL". Region reports false for an address
	// without a region.
	Region(ip netip.Addr) (code string, ok bool)
}

// Tokens verifies bearer tokens. Tokens is safe for concurrent use.
type Tokens interface {
	// Verify returns the claims of a token with a valid signature and valid times. The
	// token has 1 to 8192 letters, digits and -._~+/=, and comes from an untrusted client.
	Verify(token string) (headgate.Values, bool)
}

// Trusts reports whether peer may name the client of a request. An invalid address
// means a peer on a Unix socket. Zones are ignored.
func (id *Identity) Trusts(peer netip.Addr) bool {
	if id == nil {
		return false
	}
	if !peer.IsValid() {
		return id.TrustUnix
	}
	peer = peer.Unmap().WithZone("")
	for _, network := range id.TrustedProxies {
		if network.Contains(peer) {
			return true
		}
	}
	return false
}

// Resolve sets XFFIP, UserIP, ClientIP, Region and Claims of the request, as far as needs asks
// for them. Resolve keeps values that the front has set: a valid address, a Region that is
// not "", and Claims that are not nil.
//
// XFFIP and UserIP become IP when the peer is not trusted, when its header names no
// single client, or when the Identity is nil. Region is the region of UserIP if there
// are UserIPHeaders, and otherwise the region of XFFIP. Claims come from the bearer
// token in Authorization, from any peer, because the signature proves them.
//
// ClientIP is IP when the peer is not trusted. Else it is the address of the first of UserIPHeaders that the request has, or without
// one that of X-Forwarded-For, or without entries of clients IP. Unlike UserIP and XFFIP, it is invalid when such a header is not
// plain: IP is then the address of a proxy, and a client must not get the rights of its network.
//
// Resolve itself allocates nothing. Regions and Tokens may allocate.
func (id *Identity) Resolve(req *headgate.Request, needs Needs) {
	if needs&NeedXFFIP != 0 && !req.XFFIP.IsValid() {
		req.XFFIP = id.xffIP(req)
	}
	if needs&NeedUserIP != 0 && !req.UserIP.IsValid() {
		req.UserIP = id.userIP(req)
	}
	if needs&NeedClientIP != 0 && !req.ClientIP.IsValid() {
		req.ClientIP = id.clientIP(req)
	}
	if id == nil {
		return
	}
	if needs&NeedRegion != 0 && req.Region == "" && id.Regions != nil {
		req.Region = id.region(req)
	}
	if needs&NeedClaims != 0 && req.Claims == nil && id.Tokens != nil {
		req.Claims = id.claims(req)
	}
}

// region looks up the best known client address, even if no rule counts by that
// address.
func (id *Identity) region(req *headgate.Request) string {
	sender := req.XFFIP
	switch {
	case len(id.UserIPHeaders) > 0:
		if sender = req.UserIP; !sender.IsValid() {
			sender = id.userIP(req)
		}
	case !sender.IsValid():
		sender = id.xffIP(req)
	}
	if !sender.IsValid() {
		return ""
	}
	code, known := id.Regions.Region(sender.Unmap().WithZone(""))
	if !known {
		return ""
	}
	return code
}

// claims returns nil when the request has no valid token.
func (id *Identity) claims(req *headgate.Request) headgate.Values {
	token, found := bearer(req.Header)
	if !found {
		return nil
	}
	claims, good := id.Tokens.Verify(token)
	if !good {
		return nil
	}
	return claims
}
