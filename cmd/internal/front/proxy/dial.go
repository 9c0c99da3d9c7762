package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// UpstreamConfig is the address of the service, and the bounds for reaching it.
type UpstreamConfig struct {
	// URL has the scheme http, https or h2c (HTTP/2 without TLS, for gRPC) with a host,
	// or unix with a path.
	URL *url.URL
	// Timeout bounds the time until the service starts its response; 0 means no bound.
	Timeout time.Duration
	// BodyIdle bounds each write to the service; 0 means no bound.
	BodyIdle time.Duration
	// TLS returns the configuration for a new https connection. Upstream calls TLS for
	// each connection. With nil, the system's authorities and no client certificate are used.
	TLS func() *tls.Config
}

// Upstream sends requests to one service. An Upstream provides a Config's Upstream and
// Transport. An Upstream is safe for concurrent use.
type Upstream struct {
	// URL has the scheme http or https and a host, even for a unix socket.
	URL *url.URL

	transport *http.Transport
	client    *client.Client // nil if only transport reaches the service
}

// NewUpstream returns an Upstream, or an error for an invalid address.
func NewUpstream(c UpstreamConfig) (*Upstream, error) {
	if c.URL == nil {
		return nil, fmt.Errorf("proxy: the upstream is not set: write its address, as in http://127.0.0.1:9000")
	}
	u := &Upstream{URL: &url.URL{Scheme: "http", Host: c.URL.Host}, transport: NewTransport(c.Timeout)}
	protocols := new(http.Protocols)
	u.transport.Protocols = protocols
	u.transport.ForceAttemptHTTP2 = false // Protocols selects HTTP/2.
	dial := u.transport.DialContext
	if c.URL.Scheme == "unix" {
		dial = dialUnix(c.URL.Path)
	}
	u.transport.DialContext = boundWrites(dial, c.BodyIdle)
	u.client = newClient(c, dial)
	switch scheme := c.URL.Scheme; {
	case scheme == "unix":
		if !filepath.IsAbs(c.URL.Path) || c.URL.Host != "" {
			return nil, fmt.Errorf("proxy: upstream %s has no absolute path: write unix:/path/to/socket", c.URL.Redacted())
		}
		u.URL.Host = "localhost" // The dialer ignores the host.
		protocols.SetHTTP1(true)
	case c.URL.Host == "":
		return nil, fmt.Errorf("proxy: upstream %s has no host: add a host, as in http://127.0.0.1:9000", c.URL.Redacted())
	case scheme == "http":
		protocols.SetHTTP1(true)
	case scheme == "https":
		u.URL.Scheme = "https"
		u.transport.DialTLSContext = dialTLS(u.transport.DialContext, c.TLS)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
	case scheme == "h2c":
		// HTTP/2 pings stay off: gRPC servers close a connection that pings more often
		// than every few minutes. TCP keep-alives detect a dead service instead. net/http
		// still pings once after a canceled request.
		protocols.SetUnencryptedHTTP2(true)
	default:
		return nil, fmt.Errorf("proxy: upstream %s has an unknown scheme: write http, https, h2c or unix", c.URL.Redacted())
	}
	return u, nil
}

// newClient returns the own client for a service that speaks HTTP/1.1 without TLS, or nil.
func newClient(c UpstreamConfig, dial dialFunc) *client.Client {
	address := c.URL.Host
	switch {
	case c.URL.Scheme != "http" && c.URL.Scheme != "unix":
		return nil
	case c.URL.Port() == "":
		address = net.JoinHostPort(c.URL.Hostname(), "80")
	}
	return client.New(client.Config{
		Dial:    func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", address) },
		Timeout: c.Timeout, BodyIdle: c.BodyIdle,
		MaxHeader: maxUpstreamHeader, MaxIdle: idleConnections, IdleTimeout: idleUpstream,
	})
}

func dialUnix(path string) dialFunc {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
}

// dialTLS reads the configuration for every connection, so that replaced authorities
// and certificates apply to all new connections.
func dialTLS(dial dialFunc, newest func() *tls.Config) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if newest != nil {
			config = newest().Clone()
		}
		config.NextProtos = []string{"h2", "http/1.1"}
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, adviseHandshake(err)
		}
		return conn, nil
	}
}

// adviseHandshake adds advice to the error of a service that answers without TLS, or
// not at all.
func adviseHandshake(err error) error {
	const fix = "write http:// (gRPC: h2c://) in place of https:// in proxy.upstream"
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the service did not answer the TLS handshake: %w: if the service has no TLS, %s", err, fix)
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return fmt.Errorf("%w: the service answers without TLS: %s", err, fix)
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (u *Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	return u.transport.RoundTrip(r)
}

// Client returns the own client for the service. It returns nil for a service that only
// net/http reaches, with TLS or HTTP/2.
func (u *Upstream) Client() *client.Client { return u.client }

// CloseIdleConnections closes all idle connections.
func (u *Upstream) CloseIdleConnections() {
	u.transport.CloseIdleConnections()
	if u.client != nil {
		u.client.CloseIdleConnections()
	}
}
