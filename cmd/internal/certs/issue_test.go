package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/wallclock"
)

func TestMain(m *testing.M) { leak.Main(m) }

// authority issues certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// issued is a certificate and its key, in PEM.
type issued struct{ cert, key []byte }

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue creates a certificate for a name, valid for servers and clients.
func (a *authority) issue(t *testing.T, name string, change ...func(*x509.Certificate)) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

func (i issued) pair(t *testing.T) tls.Certificate {
	t.Helper()
	both, err := tls.X509KeyPair(i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return both
}

// folder is the folder of a test's files.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) write(t *testing.T, name string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(f.path(name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return f.path(name)
}

func (f folder) put(t *testing.T, i issued) (cert, key string) {
	t.Helper()
	return f.write(t, "tls.crt", i.cert), f.write(t, "tls.key", i.key)
}

// clock is a clock that tests advance.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// set sets the wall clock forward, or back.
func (c *clock) set(change time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = wallclock.Set(c.now, change)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
