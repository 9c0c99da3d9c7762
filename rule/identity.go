package rule

import (
	"net/netip"

	"github.com/headgate/headgate"
)

// Identity derives who sends a request from what the request says, and knows whom
// to believe. It is immutable and safe for concurrent use. A nil Identity believes
// nobody.
type Identity struct {
	// TrustedProxies are the peers whose X-Forwarded-For and user-IP headers are
	// believed; TrustUnix believes peers on unix sockets too, which have no address.
	// IPv4 networks are written as IPv4: an IPv4-mapped address counts as IPv4.
	TrustedProxies []netip.Prefix
	TrustUnix      bool
	// UserIPHeaders name the headers that carry the user's address, in canonical
	// spelling; the first that a request has counts.
	UserIPHeaders []string
	// Regions knows where addresses are; nil knows none.
	Regions Regions
	// Tokens verifies bearer tokens; nil verifies none.
	Tokens Tokens
}

// Regions tells where an address is. It is safe for concurrent use.
type Regions interface {
	// Region gives the code of ISO 3166-1, as in "NL". It is not ok for an address
	// that is nowhere.
	Region(ip netip.Addr) (code string, ok bool)
}

// Tokens verifies bearer tokens. It is safe for concurrent use.
type Tokens interface {
	// Verify gives the claims of a token whose signature and times are good. The token
	// has 1 to 8192 letters, digits and -._~+/=, and may be anybody's.
	Verify(token string) (headgate.Values, bool)
}

// Trusts reports whether peer may say who sends a request. An address that is not
// valid is a peer on a unix socket. Zones do not count.
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

// Resolve fills XFFIP, UserIP, Region and Claims of the request as far as they are
// needed. What the front has set is kept: an address that is valid, a Region that
// is not "", Claims that are not nil.
//
// XFFIP and UserIP become IP where the peer is not trusted or does not say one
// sender; so they do with a nil Identity. Region is that of UserIP when there are
// UserIPHeaders, else that of XFFIP. Claims are those of the bearer token in
// Authorization, from whatever peer: the token speaks for itself.
//
// Resolve allocates nothing but what Regions and Tokens do.
func (id *Identity) Resolve(req *headgate.Request, needs Needs) {
	if needs&NeedXFFIP != 0 && !req.XFFIP.IsValid() {
		req.XFFIP = id.xffIP(req)
	}
	if needs&NeedUserIP != 0 && !req.UserIP.IsValid() {
		req.UserIP = id.userIP(req)
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

// region asks for the best known address of the sender, whether a rule counts by
// that address or not.
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

// claims gives nil when there is no token, or none that is good.
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
