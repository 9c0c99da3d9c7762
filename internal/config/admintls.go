package config

import "github.com/headgate/headgate/internal/config/field"

// certificate reads the section tls of a listener that asks for no client certificates.
func (s *section) certificate(t *TLS) {
	tls := s.sub(s.declare("tls", field.Restart, "Files for TLS to clients of listen. The files are read again when they change."),
		"{cert: server.crt, key: server.key}")
	tls.declare("cert", field.Restart, "PEM file of the listener's certificate and its chain.")
	tls.declare("key", field.Restart, "PEM file of the certificate's key.")
	tls.pair(&t.Cert, &t.Key)
	tls.end()
	tls.checkPair(t.Cert, t.Key)
	tls.needsPair(t)
}

// AdminWarnings tells what is probably not meant about the admin listener. There is at most one text.
func (c *Config) AdminWarnings() []string {
	a := &c.Admin
	if a.Listen == "" || a.Auth == 0 || a.TLS.Cert != "" || OnlyLocal(a.Listen) {
		return nil
	}
	return []string{"admin.listen " + a.Listen + " gets the tokens of operators without TLS, so a program that reads the network has " +
		"them: set admin.tls, or listen on a loopback address"}
}
