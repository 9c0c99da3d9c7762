package etcd

import (
	"crypto/tls"
	"testing"
)

// StartTLS is Start for a server that accepts only TLS, and only clients with a certificate of the CA. The files are in
// PEM. own reaches the server. Client and CTL do not work with such a server.
func StartTLS(tb testing.TB, own *tls.Config, ca, cert, key string) *Server {
	tb.Helper()
	return start(tb, own, []string{"--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth"})
}
