package xds

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

func incoming(ctx context.Context, name string) []string {
	return metadata.ValueFromIncomingContext(ctx, name)
}

// authority issues certificates into files.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
	file string // its own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// issue writes a certificate for a name into the files FILE.crt and FILE.key.
func (a *authority) issue(t *testing.T, file, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, file+".crt", "CERTIFICATE", der), a.write(t, file+".key", "PRIVATE KEY", encoded)
}

// secured starts a server that requires client certificates of the authority.
func (a *authority) secured(t *testing.T, address string) (*control, string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(t, "server", "gateway.example"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	l := loopback(t, address)
	c := start(t, l, grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	return c, l.Addr().String()
}

// clientName returns the name in the client certificate of the last stream.
func (c *control) clientName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := peer.FromContext(c.stream)
	info, _ := p.AuthInfo.(credentials.TLSInfo)
	return info.State.PeerCertificates[0].Subject.CommonName
}

// TestTLS accepts the server only with the right authority and name.
func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	cert, key := a.issue(t, "client", "headgate")
	c, address := a.secured(t, "127.0.0.1:0")
	c.publish(t, "v1", domain("first", "good"))
	for name, test := range map[string]struct {
		files *TLS
		want  string // part of the fault, or "" for a configuration in force
	}{
		"the right name":      {&TLS{CA: a.file, Cert: cert, Key: key, ServerName: "gateway.example"}, ""},
		"a wrong name":        {&TLS{CA: a.file, Cert: cert, Key: key, ServerName: "other.example"}, "set TLS.ServerName"},
		"no name":             {&TLS{CA: a.file, Cert: cert, Key: key}, "x509"},
		"another authority":   {&TLS{CA: other.file, Cert: cert, Key: key, ServerName: "gateway.example"}, "set TLS.CA"},
		"the system's":        {&TLS{Cert: cert, Key: key, ServerName: "gateway.example"}, "set TLS.CA"},
		"without certificate": {&TLS{CA: a.file, ServerName: "gateway.example"}, "is lost"},
		"plain text":          {nil, "is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Server: address, NodeID: node, TLS: test.files})
			if err != nil {
				t.Fatal(err)
			}
			i := follow(t, s, nil)
			if test.want == "" {
				i.awaitValue(t, "good")
				return
			}
			await(t, "a fault", func() bool {
				_, faults, _ := i.known()
				return len(faults) > 0
			})
			if _, faults, _ := i.known(); i.value() != "" || !strings.Contains(faults[0].Error(), test.want) {
				t.Errorf("got value %q and fault %v, want no value and %q", i.value(), faults[0], test.want)
			}
		})
	}
}

// TestPlainServer gives advice when TLS is set and the server speaks plain text.
func TestPlainServer(t *testing.T) {
	l := loopback(t, "127.0.0.1:0")
	start(t, l)
	s, err := New(Config{Server: l.Addr().String(), TLS: &TLS{}})
	if err != nil {
		t.Fatal(err)
	}
	i := follow(t, s, nil)
	await(t, "a fault", func() bool {
		_, faults, _ := i.known()
		return len(faults) > 0
	})
	if _, faults, _ := i.known(); !strings.Contains(faults[0].Error(), "the server speaks plain text") {
		t.Errorf("got %v", faults[0])
	}
}

// TestCertificateReload replaces the client certificate. The next connection shows the new one, and
// a malformed file leaves the last valid one in use.
func TestCertificateReload(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, "client", "first")
	c, address := a.secured(t, "127.0.0.1:0")
	c.publish(t, "v1", domain("first", "one"))
	s, err := New(Config{Server: address, NodeID: node, TLS: &TLS{CA: a.file, Cert: cert, Key: key, ServerName: "gateway.example"}})
	if err != nil {
		t.Fatal(err)
	}
	i := follow(t, s, nil)
	i.awaitValue(t, "one")
	if got := c.clientName(); got != "first" {
		t.Errorf("the server saw %q, want first", got)
	}
	c.stop()
	a.issue(t, "client", "second")
	c, _ = a.secured(t, address)
	c.publish(t, "v1", domain("first", "two"))
	i.awaitValue(t, "two")
	if got := c.clientName(); got != "second" {
		t.Errorf("the server saw %q, want second", got)
	}
	c.stop()
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ = a.secured(t, address)
	c.publish(t, "v1", domain("first", "three"))
	i.awaitValue(t, "three")
	if got := c.clientName(); got != "second" {
		t.Errorf("the server saw %q, want second", got)
	}
	_, faults, _ := i.known()
	if last := faults[len(faults)-1].Error(); !strings.Contains(last, "are no pair") {
		t.Errorf("the last fault is %s, want the malformed file", last)
	}
}

// TestManyResources sends 10,000 resources through a real server, and then changes one of them.
func TestManyResources(t *testing.T) {
	l := loopback(t, "127.0.0.1:0")
	c := start(t, l)
	all := domains(10_000)
	c.publish(t, "v1", all...)
	s, err := New(Config{Server: l.Addr().String(), NodeID: node})
	if err != nil {
		t.Fatal(err)
	}
	i := follow(t, s, nil)
	i.awaitValue(t, "value")
	all[0] = domain("domain-00000", "changed")
	c.publish(t, "v2", all...)
	i.awaitValue(t, "changed")
	sets, faults, _ := i.known()
	if len(sets) != 2 || len(sets[1]) != 10_000 || len(faults) != 0 || sets[1][9_999].Name != "domain-09999" {
		t.Errorf("%d sets, the last with %d resources, faults %v", len(sets), len(sets[len(sets)-1]), faults)
	}
}
