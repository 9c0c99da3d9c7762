package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard/report"
)

// Config configures a Server.
type Config struct {
	// Handler serves a request, whose Header is nil: fields has its fields, until Handler returns, and may be changed.
	// w implements FieldsWriter.
	Handler func(w http.ResponseWriter, r *http.Request, fields *http1.List)
	// ReadHeader bounds the time from the first byte of a request to the end of its header. For
	// the first request of a connection, the time begins with Serve and includes Prepare.
	ReadHeader time.Duration
	// Idle bounds the time between two requests on a connection.
	Idle time.Duration
	// MaxHeader bounds the header of a request, in bytes.
	MaxHeader int
	// CheckEvery is how often the server checks for clients that disconnect while their request
	// is in progress. The first check of a request is after at most twice this time. A request
	// that ends earlier has no check. 0 means 250 ms.
	CheckEvery time.Duration
	// Fallback serves a connection whose next request is not in the subset. The bytes of the
	// request are read from f. A connection that is lent has one request, and its Close
	// returns the connection. Fallback does not wait for the answer.
	Fallback func(c *Client, f *FallbackConn, why report.Path)
	// Log receives the panics of handlers.
	Log *slog.Logger
}

// Server serves connections. A Server is safe for concurrent use.
type Server struct {
	config       Config
	transactions sync.Pool
	outs         sync.Pool
	dates        http1.Dates
	closing      atomic.Bool

	mu       sync.Mutex
	conns    map[*conn]struct{}
	idle     []worker      // at most mostIdle
	unneeded int           // how many of idle no connection has needed since the last check
	checking chan struct{} // ends checkClients; nil if it does not run
	finished chan struct{}
}

// New returns a Server.
func New(c Config) *Server {
	if c.CheckEvery == 0 {
		c.CheckEvery = checkEvery
	}
	return &Server{config: c, conns: map[*conn]struct{}{}}
}

// Client is a connection to serve.
type Client struct {
	// Conn is the connection. With TLS, it carries the bytes inside TLS.
	Conn net.Conn
	// Raw is the connection below TLS.
	Raw Socket
	// TLS is nil without TLS. Prepare may set it.
	TLS *tls.ConnectionState
	// Context has the values of the connection. Requests have its values, not its end.
	Context context.Context //nolint:containedctx // because it belongs to the connection.
	// State follows the connection, as http.Server.ConnState does, but the caller of Serve
	// itself knows of StateNew. The connection is StateActive when the header of a request
	// has arrived.
	State func(http.ConnState)
	// Prepare, if not nil, is called before the first read, for example for a TLS handshake.
	// With another result than report.PathFast, Fallback gets the connection. An error
	// closes the connection.
	Prepare func() (report.Path, error)
}

// Serve serves a connection on another goroutine until it ends or Fallback keeps it.
func (s *Server) Serve(client *Client) {
	c := &conn{Client: client, server: s}
	switch idle, ok := s.add(c); {
	case !ok:
		_ = client.Conn.Close()
		client.State(http.StateClosed)
	case idle != nil:
		idle <- c
	default:
		go s.work(c)
	}
}

// add registers a connection, unless the server is closing. It returns an idle worker, or nil
// if there is none.
func (s *Server) add(c *conn) (idle worker, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return nil, false
	}
	s.conns[c] = struct{}{}
	s.check()
	if last := len(s.idle) - 1; last >= 0 {
		idle, s.idle = s.idle[last], s.idle[:last]
		s.unneeded = min(s.unneeded, last)
	}
	return idle, true
}

// remove forgets a connection that has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.endCheck()
	if len(s.conns) == 0 && s.finished != nil {
		close(s.finished)
		s.finished = nil
	}
}

// Shutdown closes idle connections, and waits until the requests in progress have ended.
// An error means that ctx ended first.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	finished := make(chan struct{})
	s.mu.Lock()
	s.dismiss()
	if len(s.conns) == 0 {
		close(finished)
	} else {
		s.finished = finished
	}
	for c := range s.conns {
		c.wake()
	}
	s.mu.Unlock()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections and ends the contexts of their requests.
func (s *Server) Close() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dismiss()
	for c := range s.conns {
		c.abort()
	}
}
