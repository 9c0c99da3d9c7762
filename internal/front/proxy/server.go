package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Bounds of what a client may send and of how long it may take.
const (
	// DefaultMaxHeader bounds the fields of a request.
	DefaultMaxHeader = 64 << 10
	// maxStreams bounds the requests that one HTTP/2 connection has under way.
	maxStreams = 250
	// settle is how often a draining server looks whether its handlers are done.
	settle = 5 * time.Millisecond
	// brokenOff is how long handlers get to notice that they were broken off.
	brokenOff = time.Second
)

// ServerConfig says how long a Server waits for its clients.
type ServerConfig struct {
	// ReadHeader bounds the time from the first byte of a request to the end of its fields.
	ReadHeader time.Duration
	// Idle bounds the time between two requests of a connection.
	Idle time.Duration
	// MaxHeader bounds the fields of a request, in bytes; 0 is DefaultMaxHeader.
	MaxHeader int
	// Log gets what net/http has to say.
	Log *slog.Logger
}

// Server serves a Proxy.
type Server struct {
	http   http.Server
	proxy  *Proxy
	cancel context.CancelFunc
}

// NewServer makes a Server for p: HTTP/1.1, and HTTP/2 by prior knowledge.
func NewServer(p *Proxy, c ServerConfig) *Server {
	if c.MaxHeader == 0 {
		c.MaxHeader = DefaultMaxHeader
	}
	base, cancel := context.WithCancel(context.Background())
	s := &Server{proxy: p, cancel: cancel}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = http.Server{
		Handler:           p,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: c.ReadHeader,
		IdleTimeout:       c.Idle,
		MaxHeaderBytes:    c.MaxHeader,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	return s
}

// Serve answers on ln until Drain; it then gives nil.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("proxy: serving on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Drain takes no further connection and lets the requests under way end. Those
// that have not when ctx ends are broken off, and the error says how many.
func (s *Server) Drain(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.settled(ctx) // Shutdown does not wait for upgraded connections.
	left := s.proxy.traffic.InFlight.Load()
	s.cancel() // Upgraded connections end with it.
	closed := s.http.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokenOff)
	defer cancel()
	s.settled(ending)
	switch {
	case left > 0:
		return fmt.Errorf("proxy: requests broken off: %d: raise shutdown_timeout to let them end", left)
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("proxy: %w", err)
	case closed != nil:
		return fmt.Errorf("proxy: %w", closed)
	default:
		return nil // Connections that never sent a request are no loss.
	}
}

// settled waits until no handler runs, or ctx ends.
func (s *Server) settled(ctx context.Context) {
	tick := time.NewTicker(settle)
	defer tick.Stop()
	for s.proxy.traffic.InFlight.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
