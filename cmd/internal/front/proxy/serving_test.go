package proxy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/listen"
)

// start serves p on a free port, or on ln, until the test ends.
func start(tb testing.TB, p *Proxy, ln net.Listener, c ServerConfig) (*Server, string) {
	tb.Helper()
	if ln == nil {
		ln = opened(tb, listen.Config{Address: "127.0.0.1:0"})
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := NewServer(p, c)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			tb.Error(err)
		}
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
	return s, ln.Addr().String()
}

func opened(tb testing.TB, c listen.Config) *listen.Listener {
	tb.Helper()
	ln, err := listen.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return ln
}

// onPlane configures the data plane that the tests run with.
func onPlane(c *Config) { onThePlane(fastPlane)(c) }

// onThePlane configures a data plane, whatever plane the tests run with.
func onThePlane(fast bool) func(*Config) {
	return func(c *Config) {
		c.Fast, c.Client = fast, nil
		if u, ok := c.Transport.(*Upstream); ok && fast {
			c.Client = u.Client()
		}
	}
}

// before returns a proxy that allows everything, before an upstream at an address.
func before(t *testing.T, c UpstreamConfig, change ...func(*Config)) *Proxy {
	t.Helper()
	u, err := NewUpstream(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.CloseIdleConnections)
	return newProxy(t, allowed(), u.URL.String(), u, change...)
}

// beforeHandler returns a proxy that allows everything, before a handler.
func beforeHandler(t *testing.T, upstream http.Handler, change ...func(*Config)) *Proxy {
	t.Helper()
	behind := httptest.NewServer(upstream)
	t.Cleanup(behind.Close)
	return before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change...)
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) }

func parsed(tb testing.TB, address string) *url.URL {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// certificate returns a server configuration for 127.0.0.1 and example.com, and a client
// configuration that trusts it.
func certificate(t *testing.T) (served, trusting *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	transport, _ := s.Client().Transport.(*http.Transport)
	return &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12}, transport.TLSClientConfig
}

// httpClient returns a client with the given protocols that trusts the test's certificate.
func httpClient(t *testing.T, trusting *tls.Config, protocols func(*http.Protocols)) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	protocols(p)
	config := trusting.Clone()
	if config != nil {
		config.NextProtos = nil // The transport adds the names that its protocols need.
	}
	transport := &http.Transport{Protocols: p, TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func http1Only(p *http.Protocols) { p.SetHTTP1(true) }
func http2(p *http.Protocols)     { p.SetHTTP2(true); p.SetUnencryptedHTTP2(true) }
