package config

// tls reads how clients are served.
func (s *section) tls(t *TLS) {
	tls := s.sub("tls", "{cert: server.crt, key: server.key}")
	tls.pair(&t.Cert, &t.Key)
	tls.file("client_ca", &t.ClientCA)
	if t.ClientCA != "" {
		t.ClientAuth = ClientRequire
	}
	oneOf(tls, "client_auth", &t.ClientAuth, []choice[ClientAuth]{
		{word: string(ClientRequire), value: ClientRequire}, {word: string(ClientRequest), value: ClientRequest},
	})
	switch {
	case t.ClientCA == "" && tls.has("client_auth") && !tls.blamed(tls.pathOf("client_ca")):
		s.fault(tls.keyOf("client_auth"), "is not used without authorities of clients", "set proxy.tls.client_ca")
	case t.Cert == "" && tls.self.node != nil && !tls.blamed(tls.self.path):
		tls.missing("cert", "name the server's certificate and its key, or leave tls out")
	}
	tls.end()
}

// pair reads a certificate and its key, of which none is of use without the other.
func (s *section) pair(cert, key *string) {
	s.file("cert", cert)
	s.file("key", key)
	switch {
	case *cert != "" && *key == "" && !s.blamed(s.pathOf("key")):
		s.missing("key", "name the certificate's key")
	case *key != "" && *cert == "" && !s.blamed(s.pathOf("cert")):
		s.missing("cert", "name the key's certificate")
	}
}

// upstreamTLS reads how an upstream of https is reached.
func (s *section) upstreamTLS(p *Proxy) {
	tls := s.sub("upstream_tls", "{ca: ca.crt}")
	tls.file("ca", &p.UpstreamTLS.CA)
	tls.pair(&p.UpstreamTLS.Cert, &p.UpstreamTLS.Key)
	if v, ok := tls.text("server_name", &p.UpstreamTLS.ServerName); ok && !isHostName(v.text()) {
		s.fault(v, quote(v.text())+" is no name that a certificate has", "write it like api.example.com")
	}
	tls.end()
	if s.has("upstream_tls") && p.Upstream != nil && p.Upstream.Scheme != "https" {
		s.fault(s.keyOf("upstream_tls"), "is not used by an upstream of "+p.Upstream.Scheme, "leave it out, or write upstream with https")
	}
}
