package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/logs"
)

// serve sends each client its certificate's name, until the test ends.
func serve(t *testing.T, s *Server) net.Addr {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", s.Config())
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				if tlsConn := conn.(*tls.Conn); tlsConn.Handshake() == nil {
					who := "none"
					if shown := tlsConn.ConnectionState().PeerCertificates; len(shown) > 0 {
						who = shown[0].Subject.CommonName
					}
					_, _ = io.WriteString(conn, who)
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close(); running.Wait() })
	return ln.Addr()
}

// visit connects, and returns the server's name and the client name that the server saw.
func visit(t *testing.T, at net.Addr, config *tls.Config) (server, client string, state tls.ConnectionState, err error) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", at.String())
	if err != nil {
		return "", "", tls.ConnectionState{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	text, err := io.ReadAll(conn)
	state = conn.(*tls.Conn).ConnectionState()
	return state.PeerCertificates[0].Subject.CommonName, string(text), state, err
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func TestServer(t *testing.T) {
	a, dir := newAuthority(t), folder(t.TempDir())
	cert, key := dir.put(t, a.issue(t, "one"))
	s, err := NewServer(ServerConfig{Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if in := time.Until(s.Expires()); in < 59*time.Minute || in > time.Hour {
		t.Errorf("the certificate expires in %v, want an hour", in)
	}
	at := serve(t, s)
	for _, c := range []struct {
		name   string
		config *tls.Config
		alpn   string
		fails  string
	}{
		{"HTTP/2 first", &tls.Config{NextProtos: []string{"http/1.1", "h2"}}, "h2", ""},
		{"HTTP/1.1", &tls.Config{NextProtos: []string{"http/1.1"}}, "http/1.1", ""},
		{"TLS 1.2", &tls.Config{MaxVersion: tls.VersionTLS12}, "", ""},
		{"TLS 1.1", &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "", "protocol version"},
	} {
		c.config.RootCAs = a.pool()
		server, client, state, err := visit(t, at, c.config)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.fails)
			}
			continue
		}
		if err != nil || server != "one" || client != "none" || state.NegotiatedProtocol != c.alpn {
			t.Errorf("%s: got server %q, client %q, protocol %q, %v", c.name, server, client, state.NegotiatedProtocol, err)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	a, other, dir := newAuthority(t), newAuthority(t), folder(t.TempDir())
	cert, key := dir.put(t, a.issue(t, "one"))
	ca := dir.write(t, "ca.crt", a.pem)
	good, bad := a.issue(t, "caller").pair(t), other.issue(t, "stranger").pair(t)
	// The client presents the certificate even if the server does not list its authority.
	show := func(c *tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	for _, c := range []struct {
		name    string
		require bool
		shown   *tls.Certificate
		want    string // "" means refused
	}{
		{"required and presented", true, &good, "caller"},
		{"required and missing", true, nil, ""},
		{"required and of an unknown authority", true, &bad, ""},
		{"optional and presented", false, &good, "caller"},
		{"optional and missing", false, nil, "none"},
		{"optional and of an unknown authority", false, &bad, ""},
	} {
		s, err := NewServer(ServerConfig{Cert: cert, Key: key, ClientCA: ca, Require: c.require})
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{RootCAs: a.pool()}
		if c.shown != nil {
			config.GetClientCertificate = show(c.shown)
		}
		_, client, _, err := visit(t, serve(t, s), config)
		if client != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, client, err, c.want)
		}
	}
}

// TestClientName checks that a client needs a certificate with the name, and may have none without Require.
func TestClientName(t *testing.T) {
	a, dir := newAuthority(t), folder(t.TempDir())
	cert, key := dir.put(t, a.issue(t, "one"))
	ca := dir.write(t, "ca.crt", a.pem)
	named := func(names ...string) *tls.Certificate {
		pair := a.issue(t, "gateway.internal", func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = names, []net.IP{{192, 0, 2, 1}} }).pair(t)
		return &pair
	}
	for _, row := range []struct {
		name    string
		require bool
		shown   *tls.Certificate
		want    bool
	}{
		{"gateway.internal", true, named("other.internal", "gateway.internal"), true},
		{"Gateway.Internal", true, named("gateway.internal"), true},
		{"gateway.internal", true, named("*.internal"), true},
		{"gateway.internal", true, named("other.internal"), false},
		{"gateway.internal", true, named(), false}, // The common name does not count.
		{"gateway.internal", false, named("other.internal"), false},
		{"gateway.internal", false, nil, true},
		{"gateway.internal", true, nil, false},
		{"192.0.2.1", true, named(), true},
		{"192.0.2.2", true, named(), false},
	} {
		s, err := NewServer(ServerConfig{Cert: cert, Key: key, ClientCA: ca, Require: row.require, ClientName: row.name})
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{RootCAs: a.pool(), ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		if row.shown != nil {
			config.Certificates = []tls.Certificate{*row.shown}
		}
		for range 2 { // The second connection may resume the session of the first one.
			if _, _, _, err := visit(t, serve(t, s), config); (err == nil) != row.want {
				t.Errorf("%s, require %t, %v: got %v, want success %t", row.name, row.require, row.shown != nil, err, row.want)
			}
		}
	}
	if _, err := NewServer(ServerConfig{Cert: cert, Key: key, ClientName: "a"}); err == nil || !strings.Contains(err.Error(), "client_ca") {
		t.Errorf("a name without authorities: %v", err)
	}
}

// TestFaults checks that errors about faulty files give advice.
func TestFaults(t *testing.T) {
	a, dir := newAuthority(t), folder(t.TempDir())
	one, other := a.issue(t, "one"), a.issue(t, "other")
	cert, key := dir.put(t, one)
	empty := dir.write(t, "empty", nil)
	encrypted := dir.write(t, "encrypted", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
	huge := dir.write(t, "huge", make([]byte, maxFileBytes+1))
	otherKey := dir.write(t, "other.key", other.key)
	for want, c := range map[string]ServerConfig{
		"set both":                           {Cert: cert},
		"set client_ca":                      {Cert: cert, Key: key, Require: true},
		"check that the file exists":         {Cert: dir.path("none"), Key: key},
		"no such file":                       {Cert: cert, Key: dir.path("none")},
		"use a certificate with its own key": {Cert: cert, Key: otherKey},
		"the key in":                         {Cert: cert, Key: encrypted},
		"has no certificate: write":          {Cert: empty, Key: key},
		"do not match":                       {Cert: cert, Key: empty},
		"has no certificate of an":           {Cert: cert, Key: key, ClientCA: empty},
		"has more than 1048576 bytes":        {Cert: huge, Key: key},
		"path of the PEM file itself":        {Cert: string(dir), Key: key},
		"use a certificate":                  {Cert: cert, Key: cert},
	} {
		if _, err := NewServer(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v returned %v, want an error with %q", c, err, want)
		}
	}
	for want, c := range map[string]ClientConfig{
		"set both, or neither":       {Cert: cert},
		"check that the file exists": {CA: dir.path("none")},
		"do not match":               {Cert: cert, Key: otherKey},
	} {
		if _, err := NewClient(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v returned %v, want an error with %q", c, err, want)
		}
	}
}

func TestDatesAreWarnings(t *testing.T) {
	a, dir := newAuthority(t), folder(t.TempDir())
	for want, change := range map[string]func(*x509.Certificate){
		"expired on":          func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"is not valid before": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
	} {
		cert, key := dir.put(t, a.issue(t, "old", change))
		var out logs.Text
		if _, err := NewServer(ServerConfig{Cert: cert, Key: key, Log: out.Logger()}); err != nil || strings.Count(out.String(), want) != 1 {
			t.Errorf("got %v, want a warning with %q", err, want)
		}
	}
}

// TestReplacedFiles checks that a replaced pair is served within a second, without a signal.
func TestReplacedFiles(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	first, second := a.issue(t, "first"), a.issue(t, "second")
	cert, key := dir.put(t, first)
	var out logs.Text
	s, err := NewServer(ServerConfig{Cert: cert, Key: key, Log: out.Logger(), Clock: now.time})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, s)
	expect := func(when, want string) {
		t.Helper()
		if got, _, _, err := visit(t, at, &tls.Config{RootCAs: a.pool()}); got != want || err != nil {
			t.Errorf("%s: served %q (%v), want %q", when, got, err, want)
		}
	}
	dir.put(t, second)
	expect("less than a second later", "first")
	now.advance(checkEvery)
	expect("a second later", "second")
	if strings.Count(out.String(), "replaced certificates") != 1 {
		t.Error("the log has no line about the new certificate")
	}
	now.advance(checkEvery)
	expect("unchanged", "second")

	// The new certificate is written before its key.
	dir.write(t, "tls.crt", first.cert)
	for range 3 {
		now.advance(checkEvery)
		expect("half replaced", "second")
	}
	if n := strings.Count(out.String(), "do not match"); n != 1 {
		t.Errorf("the log has %d lines about the half-replaced pair, want 1", n)
	}
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "do not match") {
		t.Errorf("Reload returned %v", err)
	}
	expect("after a failed Reload", "second")
	dir.write(t, "tls.key", first.key)
	now.advance(checkEvery)
	expect("both files replaced", "first")

	dir.put(t, second)
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	expect("at once after Reload", "second")
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	now.advance(checkEvery)
	expect("removed", "second")
}

// TestReplacedFilesAfterTheClockIsSet checks that files are read within a second, whatever the wall clock says.
func TestReplacedFilesAfterTheClockIsSet(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	cert, key := dir.put(t, a.issue(t, "first"))
	s, err := NewServer(ServerConfig{Cert: cert, Key: key, Log: new(logs.Text).Logger(), Clock: now.time})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, s)
	dir.put(t, a.issue(t, "second"))
	now.set(-time.Hour)
	now.advance(checkEvery)
	if got, _, _, err := visit(t, at, &tls.Config{RootCAs: a.pool()}); got != "second" || err != nil {
		t.Errorf("the clock was set back: served %q (%v), want second", got, err)
	}
}

// TestExchangedLink checks a swapped symbolic link to the folder of all files, as in
// Kubernetes.
func TestExchangedLink(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	for _, name := range []string{"first", "second"} {
		if err := os.Mkdir(dir.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		folder(dir.path(name)).put(t, a.issue(t, name))
	}
	// All files have the same age and size.
	past := time.Now().Add(-time.Hour)
	for _, file := range []string{"first/tls.crt", "first/tls.key", "second/tls.crt", "second/tls.key"} {
		if err := os.Chtimes(dir.path(file), past, past); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(to, dir.path("..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir.path("..data_tmp"), dir.path("..data")); err != nil {
			t.Fatal(err)
		}
	}
	link("first")
	s, err := NewServer(ServerConfig{Cert: dir.path("..data/tls.crt"), Key: dir.path("..data/tls.key"), Clock: now.time})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, s)
	link("second")
	now.advance(checkEvery)
	if got, _, _, err := visit(t, at, &tls.Config{RootCAs: a.pool()}); got != "second" || err != nil {
		t.Errorf("served %q (%v), want second", got, err)
	}
}

// TestSessions checks that a session ends when its authority is removed, and is resumed
// otherwise.
func TestSessions(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		a, other, dir := newAuthority(t), newAuthority(t), folder(t.TempDir())
		cert, key := dir.put(t, a.issue(t, "one"))
		ca := dir.write(t, "ca.crt", a.pem)
		s, err := NewServer(ServerConfig{Cert: cert, Key: key, ClientCA: ca, Require: true})
		if err != nil {
			t.Fatal(err)
		}
		at := serve(t, s)
		config := &tls.Config{
			RootCAs: a.pool(), ClientSessionCache: tls.NewLRUClientSessionCache(1), MaxVersion: version,
			Certificates: []tls.Certificate{a.issue(t, "caller").pair(t)},
		}
		for i, want := range []bool{false, true} {
			_, client, state, err := visit(t, at, config)
			if client != "caller" || state.DidResume != want || err != nil {
				t.Errorf("visit %d: got %q, resumed: %v, %v", i, client, state.DidResume, err)
			}
		}
		dir.put(t, a.issue(t, "one"))
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, client, state, err := visit(t, at, config); client != "caller" || !state.DidResume || err != nil {
			t.Errorf("after the certificate was replaced: got %q, resumed: %v, %v", client, state.DidResume, err)
		}
		dir.write(t, "ca.crt", other.pem)
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, client, _, err := visit(t, at, config); client != "" || err == nil {
			t.Errorf("after the authority was replaced: got %q, %v", client, err)
		}
	}
}

func TestClient(t *testing.T) {
	a, other, dir, now := newAuthority(t), newAuthority(t), folder(t.TempDir()), newClock()
	serverCert, serverKey := dir.put(t, a.issue(t, "upstream"))
	ca := dir.write(t, "ca.crt", a.pem)
	s, err := NewServer(ServerConfig{Cert: serverCert, Key: serverKey, ClientCA: ca, Require: true})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, s)
	mine := a.issue(t, "proxy")
	cert, key := dir.write(t, "my.crt", mine.cert), dir.write(t, "my.key", mine.key)
	c, err := NewClient(ClientConfig{CA: ca, Cert: cert, Key: key, ServerName: "upstream", Clock: now.time})
	if err != nil {
		t.Fatal(err)
	}
	if _, client, _, err := visit(t, at, c.Config()); client != "proxy" || err != nil {
		t.Errorf("visit got %q, %v", client, err)
	}
	if c.Expires().IsZero() {
		t.Error("Expires is zero for a certificate")
	}
	wrong, err := NewClient(ClientConfig{CA: ca, Cert: cert, Key: key, ServerName: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	var name x509.HostnameError
	if _, _, _, err := visit(t, at, wrong.Config()); !errors.As(err, &name) {
		t.Errorf("a server with another name: got %v", err)
	}
	// Authorities and certificates are replaced as for a server.
	dir.write(t, "ca.crt", other.pem)
	now.advance(checkEvery)
	var unknown x509.UnknownAuthorityError
	if _, _, _, err := visit(t, at, c.Config()); !errors.As(err, &unknown) {
		t.Errorf("a server of another authority: got %v", err)
	}
	plain, err := NewClient(ClientConfig{})
	if err != nil || plain.Config().RootCAs != nil || !plain.Expires().IsZero() {
		t.Errorf("without files: got %v", err)
	}
}

// TestReloadUnderLoad checks that concurrent handshakes and reloads always see a matching
// pair.
func TestReloadUnderLoad(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	pairs := []issued{a.issue(t, "first"), a.issue(t, "second")}
	cert, key := dir.put(t, pairs[0])
	s, err := NewServer(ServerConfig{Cert: cert, Key: key, Clock: now.time})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, s)
	var visitors sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		visitors.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, _, err := visit(t, at, &tls.Config{RootCAs: a.pool()}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 20 {
		dir.put(t, pairs[i%2])
		now.advance(checkEvery)
		_ = s.Reload() // Reload may fail, because this goroutine may have replaced only half of the pair.
	}
	close(stop)
	visitors.Wait()
}
