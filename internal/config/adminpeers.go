package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// MaxAdminPeers bounds the peers, and the addresses of all their names.
const MaxAdminPeers = 64

// adminPeers reads the instances for which an instance answers too.
func (s *section) adminPeers(a *Admin) {
	const example = "[headgate-admin.default.svc:9902]"
	s.declare("peers", field.Taken, "host:port of admin.listen of the instances whose figures the console and /api/v1/live have too, with "+
		"https:// before it for admin.tls. All addresses of a name are instances. This instance may be among them.")
	s.outline.field("peers").entries().written("", adminPeerPattern)
	entries, _ := s.scalars("peers", example, MaxAdminPeers)
	for _, v := range entries {
		text, problem := parsePeer(v.text())
		switch {
		case problem != "":
			s.fault(v, quote(v.text())+" "+problem, "write it like headgate-admin.default.svc:9902, or https://headgate.example.com:9902")
		case slices.Contains(a.Peers, text):
			s.fault(v, quote(v.text())+" appears twice", "remove one of them")
		default:
			a.Peers = append(a.Peers, text)
		}
	}
	s.file(s.declare("peers_token_file", field.Taken, "File with the token of a caller with the scope read, for peers that ask for one. A "+
		"caller with a token of its own uses that one."), &a.PeersTokenFile)
	s.file(s.declare("peers_ca", field.Taken, "PEM file of authorities for the certificates of peers. Default: those of the system."),
		&a.PeersCA)
	for _, name := range []string{"peers_token_file", "peers_ca"} {
		if v, ok := s.given(name); ok && len(a.Peers) == 0 && !s.blamed(s.pathOf("peers")) {
			s.fault(v, "has no effect without peers", "set "+s.pathOf("peers"))
		}
	}
	secured := func(peer string) bool { return strings.HasPrefix(peer, "https://") }
	if v, ok := s.given("peers_ca"); ok && len(a.Peers) > 0 && !slices.ContainsFunc(a.Peers, secured) {
		s.fault(v, "has no effect on peers without https://", "write https:// before a peer, or remove the field")
	}
}

// adminPeerPattern is that of an address with a scheme or without one, for the schema.
const adminPeerPattern = `^(https?://)?[^/]+:[0-9]+$`

// parsePeer reads an address with a scheme or without one, and gives it in one form. problem says what is wrong, or is "".
func parsePeer(text string) (form, problem string) {
	scheme, at := "", text
	if s, rest, found := strings.Cut(text, "://"); found {
		if s != "http" && s != "https" {
			return "", "has the scheme " + quote(s) + ", which is not http or https"
		}
		if at = rest; s == "https" {
			scheme = "https://"
		}
	}
	a, _, problem := parseAddress(at)
	switch {
	case problem != "":
		return "", problem
	case a.host == "":
		return "", "has no host"
	case a.port == 0:
		return "", "has the port 0"
	}
	if ip, err := netip.ParseAddr(a.host); err == nil && ip.IsUnspecified() {
		return "", "is no address that can be called"
	}
	host := strings.ToLower(a.host)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s%s:%d", scheme, host, a.port), ""
}
