package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/accesslog"
	"github.com/headgate/headgate/rule"
)

// Bounds of what a client may send and of how long it may take.
const (
	// DefaultMaxHeader bounds the fields of a request.
	DefaultMaxHeader = 64 << 10
	// maxStreams bounds the requests that one HTTP/2 connection has under way.
	maxStreams = 250
	// pingAfter is when a client of HTTP/2 that says nothing is asked whether it is
	// still there, and pingTimeout how long it may take to say so.
	pingAfter   = time.Minute
	pingTimeout = 15 * time.Second
)

// ServerConfig says whom a Server serves, and how long it waits for its clients.
type ServerConfig struct {
	// ReadHeader bounds the time from the first byte of a request to the end of its
	// fields, and that of a handshake.
	ReadHeader time.Duration
	// Idle bounds the time between two requests of a connection.
	Idle time.Duration
	// MaxHeader bounds the fields of a request, in bytes; 0 is DefaultMaxHeader.
	MaxHeader int
	// TLS serves TLS, with HTTP/2 where the client wants it; nil serves without.
	TLS *tls.Config
	// Trusts says which peers may name a request's id; the zero Addr is a peer on a
	// unix socket. nil trusts nobody.
	Trusts func(peer netip.Addr) bool
	// RequestID is the header of a request's id, in canonical spelling; "" is none.
	RequestID string
	// Access gets a line for each request; nil is nobody.
	Access *accesslog.Log
	// KeyNames names keys in Access; nil names none.
	KeyNames *rule.KeyNames
	// Log gets what net/http has to say.
	Log *slog.Logger
}

// Server serves a Proxy.
type Server struct {
	http      http.Server
	proxy     *Proxy
	tls       *tls.Config // nil without TLS
	log       *slog.Logger
	trusts    func(netip.Addr) bool
	requestID string
	access    *accesslog.Log
	keyNames  *rule.KeyNames
	entries   sync.Pool
	cancel    context.CancelFunc

	open     atomic.Int64 // connections, upgraded ones excepted
	fresh    sync.Map     // net.Conn of those that have sent no request yet
	draining atomic.Bool

	mu        sync.Mutex // guards listeners, and that none is added to a draining server
	listeners []net.Listener
	serving   sync.WaitGroup
}

// NewServer makes a Server for p: HTTP/1.1, and HTTP/2 by TLS or, without TLS, by
// prior knowledge.
func NewServer(p *Proxy, c ServerConfig) *Server {
	if c.MaxHeader == 0 {
		c.MaxHeader = DefaultMaxHeader
	}
	if c.Trusts == nil {
		c.Trusts = func(netip.Addr) bool { return false }
	}
	base, cancel := context.WithCancel(context.Background())
	s := &Server{
		proxy: p, cancel: cancel, tls: c.TLS, log: c.Log, trusts: c.Trusts, requestID: c.RequestID, access: c.Access, keyNames: c.KeyNames,
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // TLS ends below net/http.
	s.http = http.Server{
		Handler:           http.HandlerFunc(s.handle),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		ReadHeaderTimeout: c.ReadHeader,
		IdleTimeout:       c.Idle,
		MaxHeaderBytes:    c.MaxHeader,
		ErrorLog:          slog.NewLogLogger(clientFaults{c.Log.Handler()}, slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         s.track,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	// OPTIONS * is a request like any other: rules count it, and the log has its line.
	s.http.DisableGeneralOptionsHandler = true
	return s
}

// handle notes a request, its answer, and how long it took.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	connOf(r).enter(r)
	e := s.enter(w, r)
	finished := false
	defer func() { s.leave(e, finished) }() // The reverse proxy aborts an answer by a panic.
	s.proxy.ServeHTTP(e, r)
	finished = true
}

// Serve answers on ln until Drain; it then gives nil.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		_ = ln.Close()
		return nil
	}
	s.listeners = append(s.listeners, ln)
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()
	err := s.http.Serve(newConns(ln, s.tls, s.log))
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() {
		return nil
	}
	return fmt.Errorf("proxy: serving on %s: %w", ln.Addr(), err)
}

// track counts connections, and knows those that have not sent a request.
func (s *Server) track(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
		s.fresh.Store(c, nil)
	case http.StateActive:
		s.fresh.Delete(c)
	case http.StateHijacked, http.StateClosed:
		s.fresh.Delete(c)
		s.open.Add(-1)
	case http.StateIdle:
	}
}
