package http2

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// Config configures a Server.
type Config struct {
	Handler http.Handler
	// Idle bounds the time without a stream on a connection; 0 means no bound.
	Idle time.Duration
	// MaxHeader bounds the header list of a request, in bytes.
	MaxHeader int
	// MaxStreams bounds the streams of a connection, and its handlers that run at the same time.
	MaxStreams int
	// PingAfter is the time without a frame after which the client gets a ping. PingTimeout bounds the time for its reply.
	PingAfter, PingTimeout time.Duration
	// ReceiveStream and ReceiveConnection bound the buffered bytes of bodies.
	ReceiveStream, ReceiveConnection int32
	// Log receives the faults of clients and the panics of handlers, in the words of net/http.
	Log *slog.Logger
}

// Client is a connection to serve, behind the preface of the client.
type Client struct {
	Conn net.Conn
	// Context has the values of the connection. Requests have its values, not its end.
	Context context.Context //nolint:containedctx // because it belongs to the connection.
	// State follows the connection, as http.Server.ConnState does, but the caller of Serve itself knows of StateNew. Calls do not overlap.
	State func(http.ConnState)
}

// Server serves connections. A Server is safe for concurrent use.
type Server struct {
	config  Config
	workers workers
	streams sync.Pool
	buffers sync.Pool
	dates   http1.Dates
	waiting atomic.Int64 // streams that wait for a handler

	mu       sync.Mutex // guards the fields below
	conns    map[*conn]struct{}
	closing  bool          // Shutdown or Close was called
	closed   bool          // Close was called
	finished chan struct{} // closed when the last connection ends; nil before Shutdown
}

// New returns a Server.
func New(c Config) *Server {
	return &Server{config: c, conns: map[*conn]struct{}{}}
}

// Serve serves a connection until it ends.
func (s *Server) Serve(client *Client) {
	c := newConn(s, client)
	late, closed := s.add(c)
	if closed {
		_ = client.Conn.Close()
		client.State(http.StateClosed)
		return
	}
	c.serve(late)
	s.remove(c)
}

// add registers a connection. It reports whether Shutdown was called before, and whether Close was: then it registers nothing.
func (s *Server) add(c *conn) (late, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, true
	}
	s.conns[c] = struct{}{}
	s.workers.bound(len(s.conns))
	return s.closing, false
}

// remove forgets a connection that has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.workers.bound(len(s.conns))
	if len(s.conns) == 0 && s.finished != nil {
		close(s.finished)
		s.finished = nil
	}
}

// warnf logs a message in the words of net/http.
func (s *Server) warnf(format string, args ...any) {
	s.config.Log.Warn(fmt.Sprintf(format, args...)) //nolint:sloglint // because the proxy knows the faults of clients by these words.
}

// Shutdown sends GOAWAY to all clients, waits until the streams in progress have ended, and closes the connections, each after its client
// or after closeDelay. An error means that ctx ended first.
func (s *Server) Shutdown(ctx context.Context) error {
	finished := make(chan struct{})
	s.mu.Lock()
	s.closing = true
	if len(s.conns) == 0 {
		close(finished)
	} else {
		s.finished = finished
	}
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.shutdown() // It may wait for a client, of TLS for some seconds.
	}
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections, which ends the contexts of their requests.
func (s *Server) Close() {
	s.mu.Lock()
	s.closing, s.closed = true, true
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Conn.Close() // The reader of the connection ends its streams.
	}
}
