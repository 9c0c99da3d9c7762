package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/rule/jwt"
)

const (
	// maxTrustedProxies bounds the networks that a sender's address is compared with.
	maxTrustedProxies = 1000
	// maxUserIPHeaders bounds the headers that a request is asked for.
	maxUserIPHeaders = 8
	// mostLeeway is more than clocks differ that anybody sets. It is as long as a
	// token lives on after its end.
	mostLeeway = 10 * time.Minute
)

// trustUnixWord stands for the peers on unix sockets, which have no address.
const trustUnixWord = "unix"

// identity reads whom to believe about who sends a request.
func (s *section) identity(id *Identity) {
	identity := s.sub(s.declare("identity", field.Taken, "Whom to believe about who sends a request."), "{trusted_proxies: [10.0.0.0/8]}")
	id.TrustedProxies, id.TrustUnix = identity.peers(identity.declare("trusted_proxies", field.Taken,
		"Networks and addresses of proxies whose X-Forwarded-For and user-IP headers are believed; unix is peers on "+
			"unix sockets."))
	identity.userIPHeaders(id)
	identity.file(identity.declare("region_db", field.Taken, "MaxMind database of countries, for key region."), &id.RegionDB)
	identity.jwt(&id.JWT)
	identity.end()
	_, trusted := identity.given("trusted_proxies")
	if v, ok := identity.given("user_ip_headers"); ok && !trusted && !s.blamedAt(identity.self.path) {
		s.fault(v, "nobody is trusted to set them", "set identity.trusted_proxies to the networks of the proxies that do")
	}
}

// peers reads who is believed about the senders behind: networks, and unix for
// peers on unix sockets.
func (s *section) peers(name string) (networks []netip.Prefix, unix bool) {
	defer func() { s.keep(name, fmt.Sprint(networks, unix)) }()
	s.outline.field(name).entries().written("", peerPattern)
	entries, _ := s.scalars(name, "[10.0.0.0/8]", maxTrustedProxies)
	written := make(map[netip.Prefix]bool, len(entries))
	for _, v := range entries {
		if v.text() == trustUnixWord {
			if unix {
				s.fault(v, "unix stands twice", "leave one out")
			}
			unix = true
			continue
		}
		network, ok := s.network(v)
		switch {
		case !ok:
		case written[network]:
			s.fault(v, quote(v.text())+" stands twice", "leave one out")
		case network.Bits() == 0:
			s.fault(v, quote(v.text())+" is everybody, who could all choose whom they count as", "write the networks of the proxies alone")
		default:
			written[network] = true
			networks = append(networks, network)
		}
	}
	return networks, unix
}

// network reads an address or a network.
func (r *reader) network(v value) (netip.Prefix, bool) {
	text := v.text()
	if !strings.Contains(text, "/") {
		ip, err := netip.ParseAddr(text)
		if err == nil && ip.Zone() == "" && !ip.Is4In6() {
			return netip.PrefixFrom(ip, ip.BitLen()), true
		}
		r.addressFault(v, ip, err)
		return netip.Prefix{}, false
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil || network.Addr().Is4In6():
		r.addressFault(v, network.Addr(), err)
	case network != network.Masked():
		r.fault(v, fmt.Sprintf("%s has bits beyond its /%d", quote(text), network.Bits()),
			fmt.Sprintf("write %s, or %s for one address", network.Masked(), network.Addr()))
	default:
		return network, true
	}
	return netip.Prefix{}, false
}

// addressFault tells what is wrong with a text that is no address of ours.
func (r *reader) addressFault(v value, ip netip.Addr, err error) {
	problem, fix := " is no address and no network", "write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"
	switch {
	case err == nil && ip.Zone() != "":
		problem, fix = " has a zone, which no request has", "leave out % and what follows it"
	case err == nil && ip.Is4In6():
		problem, fix = " is IPv4 in IPv6, which no request has", "write it as IPv4, like 10.0.0.0/8"
	default:
		if near := rule.Nearest(v.text(), []string{trustUnixWord}); near != "" {
			fix = "did you mean " + near + "?"
		}
	}
	r.fault(v, quote(v.text())+problem, fix)
}

// listHeaderWords are headers that every proxy adds to, and what to use for them.
var listHeaderWords = [...]string{"X-Forwarded-For", "Forwarded"}

func (s *section) userIPHeaders(id *Identity) {
	s.declare("user_ip_headers", field.Taken, "Headers that trusted proxies set to the user's address; the first that is there counts.")
	s.outline.field("user_ip_headers").entries().text("", headerPattern, 1, maxHeaderName)
	entries, _ := s.scalars("user_ip_headers", "[X-Real-User-Ip]", maxUserIPHeaders)
	for _, v := range entries {
		name, ok := s.headerName(v, 0, v.text(), "X-Real-User-Ip")
		switch {
		case !ok:
		case slices.Contains(listHeaderWords[:], name):
			s.fault(v, name+" lists the proxies on the way too", "leave it out, and use key xff_ip")
		case isMessageHeader(name):
			s.fault(v, name+" holds no address", "write the header that your proxy sets, like X-Real-User-Ip")
		case slices.Contains(id.UserIPHeaders, name):
			s.fault(v, name+" stands twice", "leave one out")
		default:
			id.UserIPHeaders = append(id.UserIPHeaders, name)
		}
	}
}

// jwt reads which bearer tokens are good.
func (s *section) jwt(j *JWT) {
	jwt := s.sub(s.declare("jwt", field.Taken, "Which bearer tokens are good, for keys jwt:CLAIM."),
		"{keys: jwks.json, issuer: https://login.example.com}")
	jwt.file(jwt.declare("keys", field.Taken, "File of public keys that tokens are verified with, JWKS or PEM."), &j.Keys)
	jwt.filled(jwt.declare("issuer", field.Taken, "What the token's iss must be."), &j.Issuer, "https://login.example.com")
	jwt.filled(jwt.declare("audience", field.Taken, "What must be in the token's aud."), &j.Audience, "api.example.com")
	jwt.duration(jwt.declare("leeway", field.Taken, "How far clocks may differ; at most 10m."), &j.Leeway, 0, mostLeeway)
	jwt.end()
	if j.Keys == "" && jwt.begun() && !s.blamed(jwt.pathOf("keys")) && !s.blamedAt(jwt.self.path) {
		jwt.missing("keys", "name a file of public keys, like keys: jwks.json")
	}
}

// filled reads a text that says something.
func (s *section) filled(name string, into *string, example string) {
	s.outline.field(name).text(*into, "", 1, 0)
	if v, ok := s.textOf(name, into); ok && v.text() == "" {
		s.fault(v, "is empty", "write it like "+example+", or leave the field out")
	}
}

// checkIdentity finds parts of keys that the identity has nothing for: all
// requests would count as one, or by an address that is not the sender's.
func (r *reader) checkIdentity(c *Config) {
	for i := range c.Rules {
		for j, part := range c.Rules[i].Key {
			if problem, fix := r.baseless(c, part); problem != "" {
				v := r.find(fmt.Sprintf("rules[%d].key[%d]", i, j))
				r.fault(v, part.String()+" has nothing to go by: "+problem, fix)
			}
		}
	}
}

// baseless says why the identity has nothing for a part of a key; "" is that it has.
func (r *reader) baseless(c *Config, part rule.Part) (problem, fix string) {
	word, _, _ := strings.Cut(part.String(), ":")
	if !slices.Contains(basedWords[:], word) || r.blamedAt("identity") || r.blamedAt("identity.jwt") {
		return "", "" // A field that is not known there may be the one that was meant.
	}
	id := &c.Identity
	trusted := len(id.TrustedProxies) > 0 || id.TrustUnix || r.blamed("identity.trusted_proxies")
	headers := len(id.UserIPHeaders) > 0 || r.blamed("identity.user_ip_headers")
	switch {
	case word == "user_ip" && !headers:
		return "no header has the user's address", "set identity.user_ip_headers, or use key ip"
	case (word == "user_ip" || word == "xff_ip") && !trusted:
		return "no proxy is trusted to tell the address", "set identity.trusted_proxies, or use key ip"
	case word == "region" && id.RegionDB == "" && !r.blamed("identity.region_db"):
		return "nobody knows where addresses are", "set identity.region_db"
	case word == "jwt" && id.JWT.Keys == "" && !r.blamed("identity.jwt.keys"):
		return "no token can be verified", "set identity.jwt.keys"
	default:
		return "", ""
	}
}

// basedWords are the parts of keys that an identity derives.
var basedWords = [...]string{"xff_ip", "user_ip", "region", "jwt"}

// identity opens the keys of tokens, and gives what a guard needs of the section
// identity. regions is what region_db was opened as.
func (c *Config) identity(regions rule.Regions) (*rule.Identity, error) {
	opened := &rule.Identity{
		TrustedProxies: c.Identity.TrustedProxies, TrustUnix: c.Identity.TrustUnix, UserIPHeaders: c.Identity.UserIPHeaders,
		Regions: regions,
	}
	var faults []error
	if c.Identity.RegionDB != "" && regions == nil {
		faults = append(faults, &FileError{"identity.region_db", errors.New("the program has opened no region database: " +
			"make the guard by package store/open, or pass what region.Open gives")})
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
