package certs

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"
)

// ServerConfig names the files that clients are served with.
type ServerConfig struct {
	// Cert and Key are PEM files: the chain, the server's certificate first, and its key.
	Cert, Key string
	// ClientCA is a PEM file of the authorities of client certificates; "" asks for none.
	ClientCA string
	// Require refuses clients without a certificate. Otherwise one that is shown is
	// verified, and clients without one are served.
	Require bool
	// Log is told of replaced certificates and of what is wrong with them; nil is nobody.
	Log *slog.Logger
	// Reloaded is told of each failure to take changed files into use, the same failure once, and of each
	// success by nil. It may be called by any handshake; nil is none.
	Reloaded func(error)
	// Clock is for tests; nil is time.Now.
	Clock func() time.Time
}

// Server is the TLS of the side that clients connect to. It is safe for concurrent use.
type Server struct{ reloader }

// NewServer reads the files. The error says which one is at fault, and what to do.
func NewServer(c ServerConfig) (*Server, error) {
	switch {
	case c.Cert == "" || c.Key == "":
		return nil, errors.New("certs: serving TLS needs a certificate and its key: write both")
	case c.ClientCA == "" && c.Require:
		return nil, errors.New("certs: clients cannot be verified without their authorities: write client_ca")
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
	}
	return &loaded{config: config, expires: cert.Leaf.NotAfter, warning: validity(cert, c.Cert, now)}, nil
}

// Config gives the configuration of a server: TLS 1.2 or newer, HTTP/2 and
// HTTP/1.1, and for every handshake the newest certificates. Tickets of sessions
// stay good when they are replaced.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.newest(), nil },
	}
}
