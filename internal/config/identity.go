package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/rule/jwt"
)

const (
	// maxTrustedProxies bounds the networks that each sender's address is compared with.
	maxTrustedProxies = 1000
	// maxUserIPHeaders bounds the headers that are looked up in each request.
	maxUserIPHeaders = 8
	// mostLeeway is longer than any sensible difference between clocks. A token stays valid for
	// the leeway after it expires.
	mostLeeway = 10 * time.Minute
)

// trustUnixWord means the peers on unix sockets, which have no address.
const trustUnixWord = "unix"

// identity reads which proxies, headers and tokens are trusted to identify the client.
func (s *section) identity(id *Identity) {
	identity := s.sub(s.declare("identity", field.Taken, "Proxies, headers and tokens that are trusted to identify the client."),
		"{trusted_proxies: [10.0.0.0/8]}")
	id.TrustedProxies, id.TrustUnix = identity.peers(identity.declare("trusted_proxies", field.Taken,
		"Networks and addresses of proxies whose X-Forwarded-For and user-IP headers are trusted; unix means peers on "+
			"unix sockets."))
	identity.userIPHeaders(id)
	identity.file(identity.declare("region_db", field.Taken, "MaxMind database of countries, for key region."), &id.RegionDB)
	identity.jwt(&id.JWT)
	identity.end()
	_, trusted := identity.given("trusted_proxies")
	if v, ok := identity.given("user_ip_headers"); ok && !trusted && !s.blamedAt(identity.self.path) {
		s.fault(v, "no proxy is trusted to set these headers", "set identity.trusted_proxies to the networks of the proxies that set them")
	}
}

// peers reads a list of trusted peers: networks, and the word unix for peers on unix sockets.
func (s *section) peers(name string) (networks []netip.Prefix, unix bool) {
	defer func() { s.keep(name, fmt.Sprint(networks, unix)) }()
	s.outline.field(name).entries().written("", peerPattern)
	entries, _ := s.scalars(name, "[10.0.0.0/8]", maxTrustedProxies)
	written := make(map[netip.Prefix]bool, len(entries))
	for _, v := range entries {
		if v.text() == trustUnixWord {
			if unix {
				s.fault(v, "unix appears twice", "remove one of them")
			}
			unix = true
			continue
		}
		network, ok := s.network(v)
		switch {
		case !ok:
		case written[network]:
			s.fault(v, quote(v.text())+" appears twice", "remove one of them")
		case network.Bits() == 0:
			s.fault(v, quote(v.text())+" contains every address, so that every client could forge its address",
				"write only the networks of the proxies")
		default:
			written[network] = true
			networks = append(networks, network)
		}
	}
	return networks, unix
}

// network reads an IP address or a network.
func (r *reader) network(v value) (netip.Prefix, bool) {
	network, problem, fix := parseNetwork(v.text())
	if problem == "" {
		return network, true
	}
	if near := rule.Nearest(v.text(), []string{trustUnixWord}); near != "" {
		fix = "did you mean " + near + "?"
	}
	r.fault(v, problem, fix)
	return netip.Prefix{}, false
}

// listHeaderWords are headers with a list of addresses, to which every proxy adds one.
var listHeaderWords = [...]string{"X-Forwarded-For", "Forwarded"}

func (s *section) userIPHeaders(id *Identity) {
	s.declare("user_ip_headers", field.Taken, "Headers that trusted proxies set to the user's address; "+
		"the first that a request has counts.")
	s.outline.field("user_ip_headers").entries().text("", headerPattern, 1, maxHeaderName)
	entries, _ := s.scalars("user_ip_headers", "[X-Real-User-Ip]", maxUserIPHeaders)
	for _, v := range entries {
		name, ok := s.headerName(v, 0, v.text(), "X-Real-User-Ip")
		switch {
		case !ok:
		case slices.Contains(listHeaderWords[:], name):
			s.fault(v, name+" also lists the proxies on the way", "remove it, and use key xff_ip")
		case isMessageHeader(name):
			s.fault(v, name+" never contains an address", "write the header that your proxy sets, like X-Real-User-Ip")
		case slices.Contains(id.UserIPHeaders, name):
			s.fault(v, name+" appears twice", "remove one of them")
		default:
			id.UserIPHeaders = append(id.UserIPHeaders, name)
		}
	}
}

// jwt reads which bearer tokens are valid.
func (s *section) jwt(j *JWT) {
	jwt := s.sub(s.declare("jwt", field.Taken, "Bearer tokens that are valid, for keys jwt:CLAIM."),
		"{keys: jwks.json, issuer: https://login.example.com}")
	jwt.file(jwt.declare("keys", field.Taken, "File of public keys that tokens are verified with, JWKS or PEM."), &j.Keys)
	jwt.filled(jwt.declare("issuer", field.Taken, "Required value of the token's iss."), &j.Issuer, "https://login.example.com")
	jwt.filled(jwt.declare("audience", field.Taken, "Required entry of the token's aud."), &j.Audience, "api.example.com")
	jwt.duration(jwt.declare("leeway", field.Taken, "Tolerated difference between clocks; at most 10m."), &j.Leeway, 0, mostLeeway)
	jwt.end()
	if j.Keys == "" && jwt.begun() && !s.blamed(jwt.pathOf("keys")) && !s.blamedAt(jwt.self.path) {
		jwt.missing("keys", "name a file of public keys, like keys: jwks.json")
	}
}

// filled reads a text that must not be empty.
func (s *section) filled(name string, into *string, example string) {
	s.outline.field(name).text(*into, "", 1, 0)
	if v, ok := s.textOf(name, into); ok && v.text() == "" {
		s.fault(v, "is empty", "write it like "+example+", or remove the field")
	}
}

// identityFacts tells package check which facts about the sender the section provides. A field
// at fault counts as set, so that one mistake causes only one fault.
func (r *reader) identityFacts(c *Config) check.Identity {
	id := &c.Identity
	return check.Identity{
		Unknown: r.blamedAt("identity") || r.blamedAt("identity.jwt"),
		Trusted: len(id.TrustedProxies) > 0 || id.TrustUnix || r.blamed("identity.trusted_proxies"),
		UserIP:  len(id.UserIPHeaders) > 0 || r.blamed("identity.user_ip_headers"),
		Regions: id.RegionDB != "" || r.blamed("identity.region_db"),
		Tokens:  id.JWT.Keys != "" || r.blamed("identity.jwt.keys"),
	}
}

// identity opens the keys for tokens, and returns the identity of a guard. regions is the
// opened database of region_db.
func (c *Config) identity(regions rule.Regions) (*rule.Identity, error) {
	opened := &rule.Identity{
		TrustedProxies: c.Identity.TrustedProxies, TrustUnix: c.Identity.TrustUnix, UserIPHeaders: c.Identity.UserIPHeaders,
		Regions: regions,
	}
	var faults []error
	if c.Identity.RegionDB != "" && regions == nil {
		faults = append(faults, &FileError{"identity.region_db", errors.New("the program has opened no region database: " +
			"make the guard with package config/open, or pass the result of open.Region")})
	}
	if j := c.Identity.JWT; j.Keys != "" {
		tokens, err := jwt.Open(j.Keys, jwt.Config{Issuer: j.Issuer, Audience: j.Audience, Leeway: j.Leeway})
		if err != nil {
			faults = append(faults, &FileError{"identity.jwt.keys", err})
		} else {
			opened.Tokens = tokens
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return opened, nil
}
