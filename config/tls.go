package config

import (
	"net/netip"
	"strings"

	"github.com/headgate/headgate/config/field"
)

// tls reads how clients are served.
func (s *section) tls(t *TLS) {
	tls := s.sub(s.declare("tls", field.Restart, "How clients are served with TLS. The files are read again when they change."),
		"{cert: server.crt, key: server.key}")
	tls.declare("cert", field.Restart, "PEM file of the server's certificate and its chain.")
	tls.declare("key", field.Restart, "PEM file of the certificate's key.")
	tls.pair(&t.Cert, &t.Key)
	tls.file(tls.declare("client_ca", field.Restart, "PEM file of the authorities of client certificates. Without it, clients are "+
		"asked for none."), &t.ClientCA)
	if t.ClientCA != "" {
		t.ClientAuth = ClientRequire
	}
	oneOf(tls, tls.declare("client_auth", field.Restart, "Whether clients must show a certificate: require, unless told otherwise, "+
		"or request."), &t.ClientAuth, []choice[ClientAuth]{
		{word: string(ClientRequire), value: ClientRequire}, {word: string(ClientRequest), value: ClientRequest},
	})
	tls.end()
	tls.checkPair(t.Cert, t.Key)
	if v, ok := tls.given("client_auth"); ok && t.ClientCA == "" && !tls.blamed(tls.pathOf("client_ca")) {
		s.fault(v, "is not used without authorities of clients", "set proxy.tls.client_ca")
	}
	if t.Cert == "" && t.Key == "" && tls.begun() && !tls.blamedAny("cert", "key") && !tls.blamedAt(tls.self.path) {
		tls.missing("cert", "name the server's certificate and its key, or leave tls out")
	}
}

// pair reads a certificate and its key.
func (s *section) pair(cert, key *string) {
	s.file("cert", cert)
	s.file("key", key)
}

// checkPair finds a certificate or a key without the other. A field that is not
// known may be the one that was meant.
func (s *section) checkPair(cert, key string) {
	switch {
	case s.blamedAt(s.self.path) || s.blamedAny("cert", "key"):
	case cert != "" && key == "":
		s.missing("key", "name the certificate's key")
	case key != "" && cert == "":
		s.missing("cert", "name the key's certificate")
	}
}

// upstreamTLS reads how an upstream of https is reached.
func (s *section) upstreamTLS(p *Proxy) {
	tls := s.sub(s.declare("upstream_tls", field.Taken, "How an upstream of https is reached. The files are read again when they "+
		"change."), "{ca: ca.crt}")
	tls.file(tls.declare("ca", field.Taken, "PEM file of authorities that take the place of the system's."), &p.UpstreamTLS.CA)
	tls.declare("cert", field.Taken, "PEM file of the certificate that the service is shown.")
	tls.declare("key", field.Taken, "PEM file of that certificate's key.")
	tls.pair(&p.UpstreamTLS.Cert, &p.UpstreamTLS.Key)
	tls.declare("server_name", field.Taken, "Name in the service's certificate. Without it, the upstream's host.")
	tls.serverName(&p.UpstreamTLS.ServerName)
	tls.end()
	tls.checkPair(p.UpstreamTLS.Cert, p.UpstreamTLS.Key)
	if p.Upstream == nil || p.Upstream.Scheme == "https" {
		return
	}
	s.unused(tls, "is not used by an upstream of "+p.Upstream.Scheme, "leave it out, or write upstream with https")
}

// unused notes a section that is set and that nothing uses: where the file has it,
// or each variable that sets a part of it.
func (s *section) unused(sub *section, problem, fix string) {
	name := sub.self.path[strings.LastIndexByte(sub.self.path, '.')+1:]
	if s.has(name) {
		s.fault(s.keyOf(name), problem, fix)
		return
	}
	for _, field := range sub.asked {
		if v, ok := sub.given(field); ok {
			s.fault(v, problem, fix)
		}
	}
}

// serverName reads the name in a certificate: a host or an address.
func (s *section) serverName(into *string) {
	defer func() { s.keep("server_name", *into) }()
	s.outline.field("server_name").text("", namePattern, 1, 0)
	name := ""
	v, ok := s.textOf("server_name", &name)
	if !ok {
		return
	}
	const example = "write it like api.example.com"
	_, err := netip.ParseAddr(name)
	switch {
	case name == "":
		s.fault(v, "is empty", example+", or leave the field out")
	case err != nil && !isHostName(name):
		s.fault(v, quote(name)+" is no name that a certificate has", example)
	default:
		*into = name
	}
}
