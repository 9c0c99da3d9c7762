package certs

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// ClientConfig has the files and names for TLS to an upstream.
type ClientConfig struct {
	// CA is a PEM file of the authorities for the upstream's certificate. "" means the
	// system's authorities.
	CA string
	// Cert and Key are PEM files of the client certificate; set both or neither.
	Cert, Key string
	// ServerName is the name that the upstream's certificate must have. "" means the host
	// of the connection.
	ServerName string
	// Log receives lines about replaced and faulty certificates; nil means none.
	Log *slog.Logger
	// Reloaded is called with the error when changed files cannot be used, once for the same
	// error. After a success it is called with nil. Any handshake may call Reloaded. Reloaded may be nil.
	Reloaded func(error)
	// Clock is for tests; nil means time.Now.
	Clock func() time.Time
}

// Client provides TLS for connections to an upstream. A Client is safe for concurrent use.
type Client struct{ reloader }

// NewClient reads the files. An error names the faulty file and gives advice.
func NewClient(c ClientConfig) (*Client, error) {
	if err := bothOrNone(c.Cert, c.Key); err != nil {
		return nil, err
	}
	client := &Client{reloader{
		paths: []string{c.CA, c.Cert, c.Key}, log: c.Log, clock: c.Clock, reloaded: c.Reloaded,
		read: c.load,
	}}
	if err := client.start(); err != nil {
		return nil, err
	}
	return client, nil
}

func (c *ClientConfig) load(now time.Time) (*loaded, error) {
	fresh := &loaded{config: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}}
	if c.CA != "" {
		pool, err := authorities(c.CA)
		if err != nil {
			return nil, err
		}
		fresh.config.RootCAs = pool
	}
	if c.Cert != "" {
		cert, err := pair(c.Cert, c.Key)
		if err != nil {
			return nil, err
		}
		fresh.config.Certificates = []tls.Certificate{*cert}
		fresh.expires, fresh.warning = cert.Leaf.NotAfter, validity(cert, c.Cert, now)
	}
	return fresh, nil
}

// Config returns the newest configuration for one connection. The configuration is
// shared: callers must clone it before they change it.
func (c *Client) Config() *tls.Config { return c.newest() }
