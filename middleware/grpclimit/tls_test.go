package grpclimit_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	signed := a.sign(t, "authority")
	a.certificate, a.key = signed.Leaf, signed.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.certificate)
	return a
}

// sign returns a certificate for a name. The first certificate is self-signed.
func (a *authority) sign(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"Farms"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: a.certificate == nil, BasicConstraintsValid: true,
	}
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// TestCertificates checks that clients are counted by the subject of a certificate that TLS
// has verified. An unverified certificate counts as none.
func TestCertificates(t *testing.T) {
	known, unknown := newAuthority(t), newAuthority(t)
	for _, c := range []struct {
		name    string
		auth    tls.ClientAuthType
		clients []tls.Certificate
		codes   []codes.Code
	}{
		{
			"verified", tls.RequireAndVerifyClientCert,
			[]tls.Certificate{known.sign(t, "north"), known.sign(t, "south"), known.sign(t, "north")},
			[]codes.Code{codes.OK, codes.OK, codes.ResourceExhausted},
		},
		{
			"requested but not verified", tls.RequestClientCert,
			[]tls.Certificate{unknown.sign(t, "north"), unknown.sign(t, "south"), {}},
			[]codes.Code{codes.OK, codes.ResourceExhausted, codes.ResourceExhausted},
		},
		{
			"verified if present", tls.VerifyClientCertIfGiven,
			[]tls.Certificate{{}, known.sign(t, "north"), {}},
			[]codes.Code{codes.OK, codes.OK, codes.ResourceExhausted},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch := new(seen)
			g := newGuard(t, guard.Config{Observer: watch, Rules: []guard.Rule{limited(t, "calls", unaryMethod, one(), "mtls_subject")}})
			server := grpc.NewServer(
				grpc.Creds(credentials.NewTLS(&tls.Config{
					Certificates: []tls.Certificate{known.sign(t, "server")}, ClientCAs: known.pool, ClientAuth: c.auth, MinVersion: tls.VersionTLS13,
				})),
				grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
			)
			address := listen(t, server, new(service))
			for i, own := range c.clients {
				_, _, err := call(with(t), secure(t, address, known, own))
				expect(t, err, c.codes[i])
				want := ""
				if own.Leaf != nil && c.auth != tls.RequestClientCert {
					want = own.Leaf.Subject.String()
				}
				if got := watch.requests[i].Subject; got != want {
					t.Errorf("call %d: got subject %q, want %q", i, got, want)
				}
			}
		})
	}
}

// secure returns a client that trusts an authority and presents a certificate, unless own is
// empty.
func secure(t *testing.T, address string, trusted *authority, own tls.Certificate) testgrpc.TestServiceClient {
	t.Helper()
	config := &tls.Config{RootCAs: trusted.pool, MinVersion: tls.VersionTLS13}
	if own.Leaf != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	return dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
}
