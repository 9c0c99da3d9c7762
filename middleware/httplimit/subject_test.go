package httplimit_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// certificate returns a self-signed client certificate.
func certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"Farms, Ltd"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// counted returns the key under which a request with the certificate counts, over a real
// connection.
func counted(t *testing.T, rule guard.Rule, auth tls.ClientAuthType, trusted tls.Certificate, shown ...tls.Certificate) string {
	t.Helper()
	store := allowed()
	handler := httplimit.New(newGuard(t, store, rule), httplimit.Options{})(new(service))
	server := httptest.NewUnstartedServer(handler)
	roots := x509.NewCertPool()
	roots.AddCert(trusted.Leaf)
	server.TLS = &tls.Config{ClientAuth: auth, ClientCAs: roots, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	defer server.Close()
	transport, ok := server.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the test server's client has an unexpected transport")
	}
	transport.TLSClientConfig.Certificates = shown
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/product", http.NoBody)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return store.ops[0].Key
}

// TestSubject checks that a certificate names the client only if TLS has verified it.
func TestSubject(t *testing.T) {
	rule, barley := keyed(t, "product", "/v1/product", "mtls_subject"), certificate(t, "barley")
	without := counted(t, rule, tls.VerifyClientCertIfGiven, barley)
	if got := counted(t, rule, tls.VerifyClientCertIfGiven, barley, barley); !strings.Contains(got, `CN=barley,O=Farms\, Ltd`) {
		t.Errorf("counted under %q, want the subject as in RFC 2253", got)
	}
	if got := counted(t, rule, tls.RequestClientCert, barley, certificate(t, "barley")); got != without {
		t.Errorf("an unverified certificate counts under %q, want %q", got, without)
	}
	plain := newStage(t, allowed(), rule)
	if plain.get(t, "/v1/product", nil); plain.request == nil {
		t.Error("a request without TLS was refused")
	}
}
