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
)

// serve answers every connection with the name of its client, until the test ends.
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
					who := "nobody"
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

// visit connects and gives what the server is called and whom it takes us for.
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
		t.Errorf("the certificate ends in %v, want an hour", in)
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
				t.Errorf("%s: %v, want %q", c.name, err, c.fails)
			}
			continue
		}
		if err != nil || server != "one" || client != "nobody" || state.NegotiatedProtocol != c.alpn {
			t.Errorf("%s: %q, %q, %q, %v", c.name, server, client, state.NegotiatedProtocol, err)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	a, other, dir := newAuthority(t), newAuthority(t), folder(t.TempDir())
	cert, key := dir.put(t, a.issue(t, "one"))
	ca := dir.write(t, "ca.crt", a.pem)
	good, bad := a.issue(t, "caller").pair(t), other.issue(t, "stranger").pair(t)
	// A stranger's certificate is shown although the server did not name its authority.
	show := func(c *tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	for _, c := range []struct {
		name    string
		require bool
		shown   *tls.Certificate
		want    string // "" is refused
	}{
		{"required and shown", true, &good, "caller"},
		{"required and not shown", true, nil, ""},
		{"required and a stranger's", true, &bad, ""},
		{"wished for and shown", false, &good, "caller"},
		{"wished for and not shown", false, nil, "nobody"},
		{"wished for and a stranger's", false, &bad, ""},
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
			t.Errorf("%s: %q, %v, want %q", c.name, client, err, c.want)
		}
	}
}

// Files that go wrong are told with what to do about them.
func TestFaults(t *testing.T) {
	a, dir := newAuthority(t), folder(t.TempDir())
	one, other := a.issue(t, "one"), a.issue(t, "other")
	cert, key := dir.put(t, one)
	empty := dir.write(t, "empty", nil)
	encrypted := dir.write(t, "encrypted", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
	huge := dir.write(t, "huge", make([]byte, maxFileBytes+1))
	otherKey := dir.write(t, "other.key", other.key)
	for want, c := range map[string]ServerConfig{
		"write both":                     {Cert: cert},
		"write client_ca":                {Cert: cert, Key: key, Require: true},
		"see that the file is there":     {Cert: dir.path("none"), Key: key},
		"no such file":                   {Cert: cert, Key: dir.path("none")},
		"were issued together":           {Cert: cert, Key: otherKey},
		"the key in":                     {Cert: cert, Key: encrypted},
		"holds no certificate: write":    {Cert: empty, Key: key},
		"do not go together":             {Cert: cert, Key: empty},
		"holds no certificate of an":     {Cert: cert, Key: key, ClientCA: empty},
		"has more than 1048576 bytes":    {Cert: huge, Key: key},
		"name the PEM file itself":       {Cert: string(dir), Key: key},
		"write the two that were issued": {Cert: cert, Key: cert},
	} {
		if _, err := NewServer(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want an error that says %q", c, err, want)
		}
	}
	for want, c := range map[string]ClientConfig{
		"write both, or none":        {Cert: cert},
		"see that the file is there": {CA: dir.path("none")},
		"do not go together":         {Cert: cert, Key: otherKey},
	} {
		if _, err := NewClient(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want an error that says %q", c, err, want)
		}
	}
}

func TestDatesAreWarnings(t *testing.T) {
	a, dir := newAuthority(t), folder(t.TempDir())
	for want, change := range map[string]func(*x509.Certificate){
		"has expired": func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"begins on":   func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
	} {
		cert, key := dir.put(t, a.issue(t, "old", change))
		var out output
		if _, err := NewServer(ServerConfig{Cert: cert, Key: key, Log: out.log()}); err != nil || out.count(want) != 1 {
			t.Errorf("%v, want a warning that says %q", err, want)
		}
	}
}

// A replaced pair is served within a second, without anybody's signal.
func TestReplacedFiles(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	first, second := a.issue(t, "first"), a.issue(t, "second")
	cert, key := dir.put(t, first)
	var out output
	s, err := NewServer(ServerConfig{Cert: cert, Key: key, Log: out.log(), Clock: now.time})
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
	now.advance(lookEvery)
	expect("a second later", "second")
	if out.count("were replaced") != 1 {
		t.Error("the log does not tell of the new certificate")
	}
	now.advance(lookEvery)
	expect("unchanged", "second")

	// The new certificate comes before its key.
	dir.write(t, "tls.crt", first.cert)
	for range 3 {
		now.advance(lookEvery)
		expect("half replaced", "second")
	}
	if n := out.count("do not go together"); n != 1 {
		t.Errorf("the log tells %d times of the half replaced pair, want once", n)
	}
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "do not go together") {
		t.Errorf("Reload gives %v", err)
	}
	expect("after a Reload that failed", "second")
	dir.write(t, "tls.key", first.key)
	now.advance(lookEvery)
	expect("replaced as a whole", "first")

	dir.put(t, second)
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	expect("at once after Reload", "second")
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	now.advance(lookEvery)
	expect("removed", "second")
}

// Kubernetes exchanges a symbolic link to the folder of all files.
func TestExchangedLink(t *testing.T) {
	a, dir, now := newAuthority(t), folder(t.TempDir()), newClock()
	for _, name := range []string{"first", "second"} {
		if err := os.Mkdir(dir.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		folder(dir.path(name)).put(t, a.issue(t, name))
	}
	// The files are as old and as large as each other.
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
	now.advance(lookEvery)
	if got, _, _, err := visit(t, at, &tls.Config{RootCAs: a.pool()}); got != "second" || err != nil {
		t.Errorf("served %q (%v), want second", got, err)
	}
}

// A session that was begun under an authority ends with it, and goes on otherwise.
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
				t.Errorf("visit %d: %q, resumed %v, %v", i, client, state.DidResume, err)
			}
		}
		dir.put(t, a.issue(t, "one"))
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, client, state, err := visit(t, at, config); client != "caller" || !state.DidResume || err != nil {
			t.Errorf("after the certificate was replaced: %q, resumed %v, %v", client, state.DidResume, err)
		}
		dir.write(t, "ca.crt", other.pem)
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, client, _, err := visit(t, at, config); client != "" || err == nil {
			t.Errorf("after the authority was replaced: %q, %v", client, err)
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
		t.Errorf("visited as %q, %v", client, err)
	}
	if c.Expires().IsZero() {
		t.Error("the certificate has no end")
	}
	wrong, err := NewClient(ClientConfig{CA: ca, Cert: cert, Key: key, ServerName: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	var name x509.HostnameError
	if _, _, _, err := visit(t, at, wrong.Config()); !errors.As(err, &name) {
		t.Errorf("a server of another name gives %v", err)
	}
	// Authorities and certificate are replaced like a server's.
	dir.write(t, "ca.crt", other.pem)
	now.advance(lookEvery)
	var unknown x509.UnknownAuthorityError
	if _, _, _, err := visit(t, at, c.Config()); !errors.As(err, &unknown) {
		t.Errorf("a server of another authority gives %v", err)
	}
	plain, err := NewClient(ClientConfig{})
	if err != nil || plain.Config().RootCAs != nil || !plain.Expires().IsZero() {
		t.Errorf("without files: %v", err)
	}
}

// Handshakes and reloads at the same time see one whole pair or another.
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
		now.advance(lookEvery)
		_ = s.Reload() // It may meet half a pair of its own making.
	}
	close(stop)
	visitors.Wait()
}
