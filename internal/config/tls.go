package config

import (
	"net/netip"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// tls reads the certificates for clients.
func (s *section) tls(t *TLS) {
	tls := s.sub(s.declare("tls", field.Restart, "Files for TLS to clients. The files are read again when they change."),
		"{cert: server.crt, key: server.key}")
	tls.declare("cert", field.Restart, "PEM file of the server's certificate and its chain.")
	tls.declare("key", field.Restart, "PEM file of the certificate's key.")
	tls.pair(&t.Cert, &t.Key)
	tls.file(tls.declare("client_ca", field.Restart, "PEM file of authorities for client certificates. Without it, no certificate is "+
		"requested."), &t.ClientCA)
	oneOf(tls, tls.declare("client_auth", field.Restart, "Handling of client certificates: require (default with client_ca) "+
		"or request (default with auth: [token, mtls])."), &t.ClientAuth, []choice[ClientAuth]{
		{word: string(ClientRequire), value: ClientRequire}, {word: string(ClientRequest), value: ClientRequest},
	})
	tls.declare("client_name", field.Restart, "DNS name or IP address that a client's certificate must have as a subject alternative "+
		"name. Default: any.")
	tls.serverName("client_name", &t.ClientName)
	tls.end()
	tls.checkPair(t.Cert, t.Key)
	for _, name := range []string{"client_auth", "client_name"} {
		if v, ok := tls.given(name); ok && t.ClientCA == "" && !tls.blamed(tls.pathOf("client_ca")) {
			s.fault(v, "has no effect without client_ca", "set "+tls.pathOf("client_ca"))
		}
	}
	tls.needsPair(t)
}

// needsPair finds a section without certificate and key.
func (s *section) needsPair(t *TLS) {
	if t.Cert == "" && t.Key == "" && s.begun() && !s.blamedAny("cert", "key") && !s.blamedAt(s.self.path) {
		s.missing("cert", "name the server's certificate and its key, or remove tls")
	}
}

// demand sets the default of client_auth. A client with a token needs no certificate where either one is enough.
func (t *TLS) demand(auth Auth) {
	switch {
	case t.ClientCA == "" || t.ClientAuth != "":
	case auth == AuthToken|AuthMTLS:
		t.ClientAuth = ClientRequest
	default:
		t.ClientAuth = ClientRequire
	}
}

// pair reads a certificate and its key.
func (s *section) pair(cert, key *string) {
	s.file("cert", cert)
	s.file("key", key)
}

// checkPair finds a certificate without a key, or a key without a certificate. After an unknown
// field it reports nothing, because that field may be a misspelled one.
func (s *section) checkPair(cert, key string) {
	switch {
	case s.blamedAt(s.self.path) || s.blamedAny("cert", "key"):
	case cert != "" && key == "":
		s.missing("key", "name the certificate's key")
	case key != "" && cert == "":
		s.missing("cert", "name the key's certificate")
	}
}

// upstreamTLS reads the certificates for an upstream of https.
func (s *section) upstreamTLS(p *Proxy) {
	tls := s.sub(s.declare("upstream_tls", field.Taken, "Files for TLS to an upstream of https. The proxy reads the files again when they "+
		"change."), "{ca: ca.crt}")
	tls.file(tls.declare("ca", field.Taken, "PEM file of authorities that replace those of the system."), &p.UpstreamTLS.CA)
	tls.declare("cert", field.Taken, "PEM file of the client certificate for the service.")
	tls.declare("key", field.Taken, "PEM file of that certificate's key.")
	tls.pair(&p.UpstreamTLS.Cert, &p.UpstreamTLS.Key)
	tls.declare("server_name", field.Taken, "Name in the service's certificate. Default: the host of the upstream.")
	tls.serverName("server_name", &p.UpstreamTLS.ServerName)
	tls.end()
	tls.checkPair(p.UpstreamTLS.Cert, p.UpstreamTLS.Key)
	if p.Upstream == nil || p.Upstream.Scheme == "https" {
		return
	}
	s.unused(tls, "has no effect with an upstream of "+p.Upstream.Scheme, "remove it, or write upstream with https")
}

// unused notes a section that has no effect. The fault is at the section in the file, or at each
// variable that sets one of its fields.
func (s *section) unused(sub *section, problem, fix string) {
	name := sub.self.path[strings.LastIndexByte(sub.self.path, '.')+1:]
	if s.has(name) {
		s.fault(s.keyOf(name), problem, fix)
		return
	}
	for _, field := range sub.recorded {
		if v, ok := sub.given(field); ok {
			s.fault(v, problem, fix)
		}
	}
}

// serverName reads the name in a certificate: a host or an IP address. setting is its field.
func (s *section) serverName(setting string, into *string) {
	defer func() { s.keep(setting, *into) }()
	s.outline.field(setting).text("", namePattern, 1, 0)
	name := ""
	v, ok := s.textOf(setting, &name)
	if !ok {
		return
	}
	const example = "write it like api.example.com"
	_, err := netip.ParseAddr(name)
	switch {
	case name == "":
		s.fault(v, "is empty", example+", or remove the field")
	case err != nil && !isHostName(name):
		s.fault(v, quote(name)+" is not a valid name in a certificate", example)
	default:
		*into = name
	}
}
