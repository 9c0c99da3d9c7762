package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ServerConfig has the files for TLS to clients.
type ServerConfig struct {
	// Cert and Key are PEM files: the chain, with the server's certificate first, and the
	// key.
	Cert, Key string
	// ClientCA is a PEM file of the authorities for client certificates. With "", no client
	// certificate is requested.
	ClientCA string
	// Require refuses clients without a certificate. Without Require, a presented
	// certificate is verified, and clients without a certificate are served.
	Require bool
	// ClientName is a DNS name or an IP address that a client's certificate must have among its
	// subject alternative names; "" accepts every name. A handshake with another name fails.
	ClientName string
	// Log receives lines about replaced and faulty certificates; nil means none.
	Log *slog.Logger
	// Reloaded is called with the error when changed files cannot be used, once for the same
	// error. After a success it is called with nil. Any handshake may call Reloaded. Reloaded may be nil.
	Reloaded func(error)
	// Clock is for tests; nil means time.Now.
	Clock func() time.Time
}

// Server provides TLS for connections from clients. A Server is safe for concurrent use.
type Server struct{ reloader }

// NewServer reads the files. An error names the faulty file and gives advice.
func NewServer(c ServerConfig) (*Server, error) {
	switch {
	case c.Cert == "" || c.Key == "":
		return nil, errors.New("certs: TLS needs a certificate and its key: set both")
	case c.ClientCA == "" && (c.Require || c.ClientName != ""):
		return nil, errors.New("certs: client certificates need an authority: set client_ca")
	}
	s := &Server{reloader{
		paths: []string{c.Cert, c.Key, c.ClientCA}, log: c.Log, clock: c.Clock, reloaded: c.Reloaded,
		read: c.load,
	}}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

func (c *ServerConfig) load(now time.Time) (*loaded, error) {
	cert, err := pair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*cert}}
	if c.ClientCA != "" {
		if config.ClientCAs, err = authorities(c.ClientCA); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
		if c.Require {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
		if c.ClientName != "" {
			config.VerifyConnection = c.checkClient // Also for resumed sessions.
		}
	}
	return &loaded{config: config, expires: cert.Leaf.NotAfter, warning: validity(cert, c.Cert, now)}, nil
}

// checkClient refuses a client whose certificate lacks the name. Without Require, a client may have no
// certificate.
func (c *ServerConfig) checkClient(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return nil
	}
	if err := s.PeerCertificates[0].VerifyHostname(c.ClientName); err != nil {
		return fmt.Errorf("certs: the client's certificate lacks the name in client_name: %w", err)
	}
	return nil
}

// Config returns a server's configuration: TLS 1.2 or newer, HTTP/2 and HTTP/1.1. Every
// handshake gets the newest certificates. Session tickets stay valid when certificates are
// replaced.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.newest(), nil },
	}
}
