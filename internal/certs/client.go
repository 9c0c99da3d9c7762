package certs

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// ClientConfig says how an upstream is verified, and what it is shown.
type ClientConfig struct {
	// CA is a PEM file of the authorities that the upstream is verified by, instead
	// of the system's; "" is the system's.
	CA string
	// Cert and Key are PEM files of a certificate to show; both or none.
	Cert, Key string
	// ServerName is the name that the upstream's certificate must have; "" is the
	// host that is connected to.
	ServerName string
	// Log is told of replaced certificates and of what is wrong with them; nil is nobody.
	Log *slog.Logger
	// Reloaded is told of each failure to take changed files into use, the same failure once, and of each
	// success by nil. It may be called by any handshake; nil is none.
	Reloaded func(error)
	// Clock is for tests; nil is time.Now.
	Clock func() time.Time
}

// Client is the TLS of the side towards an upstream. It is safe for concurrent use.
type Client struct{ reloader }

// NewClient reads the files. The error says which one is at fault, and what to do.
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

// Config gives the newest configuration for one connection. It is shared: who
// changes it, for a name or for protocols, clones it first.
func (c *Client) Config() *tls.Config { return c.newest() }
