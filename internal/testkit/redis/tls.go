package redis

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
	"strconv"
	"testing"
	"time"
)

// Certificates are the test's own CA and one certificate for 127.0.0.1 and localhost. Servers and
// clients use the same certificate.
type Certificates struct {
	// CAFile, CertFile and KeyFile are PEM files. KeyFile has the key of CertFile.
	CAFile, CertFile, KeyFile string
	// Client trusts the CA and has the client certificate. For a client without a certificate,
	// clone Client and set Certificates to nil.
	Client *tls.Config
}

// StartTLS is Start for a server that accepts only TLS. Client certificates are optional. With the
// settings "--tls-auth-clients", "yes" they are required.
func StartTLS(tb testing.TB, settings ...string) (*Server, *Certificates) {
	tb.Helper()
	c := NewCertificates(tb)
	return StartTLSWith(tb, c, settings...), c
}

// StartTLSWith is StartTLS with the certificates of another server. Both servers then trust each other.
func StartTLSWith(tb testing.TB, c *Certificates, settings ...string) *Server {
	tb.Helper()
	a := access{
		tls:   c.Client,
		files: []string{"--tls", "--cacert", c.CAFile, "--cert", c.CertFile, "--key", c.KeyFile},
	}
	return start(tb, a, func(dir string, port int) []string {
		return append(common(dir,
			"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-ca-cert-file", c.CAFile,
			"--tls-cert-file", c.CertFile, "--tls-key-file", c.KeyFile, "--tls-auth-clients", "optional",
		), settings...)
	})
}

// NewCertificates creates a CA for this call only, with a certificate.
func NewCertificates(tb testing.TB) *Certificates {
	tb.Helper()
	dir := tb.TempDir()
	c := &Certificates{
		CAFile:   filepath.Join(dir, "ca.pem"),
		CertFile: filepath.Join(dir, "cert.pem"),
		KeyFile:  filepath.Join(dir, "key.pem"),
	}
	ca, caKey := template(1), newKey(tb)
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	leaf, key := template(2), newKey(tb)
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.IPAddresses, leaf.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}

	root := sign(tb, ca, ca, caKey, caKey)
	signed := sign(tb, leaf, root, key, caKey)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	writePEM(tb, c.CAFile, "CERTIFICATE", root.Raw)
	writePEM(tb, c.CertFile, "CERTIFICATE", signed.Raw)
	writePEM(tb, c.KeyFile, "PRIVATE KEY", encoded)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	c.Client = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{signed.Raw}, PrivateKey: key}},
	}
	return c
}

func template(serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: "headgate tests " + strconv.FormatInt(serial, 10)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sign(tb testing.TB, what, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) *x509.Certificate {
	tb.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, what, by, key.Public(), byKey)
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return signed
}

func writePEM(tb testing.TB, path, kind string, raw []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		tb.Fatal(err)
	}
}
