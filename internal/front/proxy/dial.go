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
)

// UpstreamConfig says where the service is, and how it is reached.
type UpstreamConfig struct {
	// URL is http, https or h2c (HTTP/2 without TLS, as gRPC speaks it) with a host,
	// or unix with a path.
	URL *url.URL
	// Timeout bounds how long the service may take to begin its answer; 0 is for ever.
	Timeout time.Duration
	// BodyIdle bounds each write to the service; 0 is for ever.
	BodyIdle time.Duration
	// TLS gives the configuration of a connection by https, the newest each time; nil
	// is the system's authorities and no certificate.
	TLS func() *tls.Config
}

// Upstream reaches one service: a Config's Upstream and Transport. It is safe for
// concurrent use.
type Upstream struct {
	// URL has the scheme http or https and a host, whatever the service's address is.
	URL *url.URL

	transport *http.Transport
}

// NewUpstream makes an Upstream. The error says what is wrong with the address.
func NewUpstream(c UpstreamConfig) (*Upstream, error) {
	if c.URL == nil {
		return nil, fmt.Errorf("proxy: there is no upstream: write its address, as in http://127.0.0.1:9000")
	}
	u := &Upstream{URL: &url.URL{Scheme: "http", Host: c.URL.Host}, transport: NewTransport(c.Timeout)}
	protocols := new(http.Protocols)
	u.transport.Protocols = protocols
	u.transport.ForceAttemptHTTP2 = false // Protocols says it better.
	dial := u.transport.DialContext
	if c.URL.Scheme == "unix" {
		dial = dialUnix(c.URL.Path)
	}
	u.transport.DialContext = boundWrites(dial, c.BodyIdle)
	switch scheme := c.URL.Scheme; {
	case scheme == "unix":
		if !filepath.IsAbs(c.URL.Path) || c.URL.Host != "" {
			return nil, fmt.Errorf("proxy: upstream %s is no path: write unix:/path/to/socket", c.URL.Redacted())
		}
		u.URL.Host = "localhost" // Nobody is asked for it.
		protocols.SetHTTP1(true)
	case c.URL.Host == "":
		return nil, fmt.Errorf("proxy: upstream %s has no host: write one, as in http://127.0.0.1:9000", c.URL.Redacted())
	case scheme == "http":
		protocols.SetHTTP1(true)
	case scheme == "https":
		u.URL.Scheme = "https"
		u.transport.DialTLSContext = dialTLS(u.transport.DialContext, c.TLS)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
	case scheme == "h2c":
		// No pings: servers of gRPC break off whoever asks more often than every few
		// minutes. TCP asks instead, and a request that is given up pings once.
		protocols.SetUnencryptedHTTP2(true)
	default:
		return nil, fmt.Errorf("proxy: upstream %s: the scheme is not known: write http, https, h2c or unix", c.URL.Redacted())
	}
	return u, nil
}

func dialUnix(path string) dialFunc {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
}

// dialTLS makes every connection with the newest configuration, so that replaced
// authorities and certificates count from the next connection on.
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

// adviseHandshake says what to do about a service that answers without TLS, or not at all.
func adviseHandshake(err error) error {
	const fix = "write http:// (gRPC: h2c://) in place of https:// in proxy.upstream"
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the service did not answer the TLS handshake: %w: if it speaks no TLS, %s", err, fix)
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

// CloseIdleConnections closes what is not in use.
func (u *Upstream) CloseIdleConnections() { u.transport.CloseIdleConnections() }
