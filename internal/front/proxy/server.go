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
	// DefaultMaxConnections is the number of connections that a server is made for.
	DefaultMaxConnections = 16384
	// maxStreams bounds the requests that one HTTP/2 connection has under way.
	maxStreams = 250
	// pingAfter is when a client of HTTP/2 that says nothing is asked whether it is
	// still there, and pingTimeout how long it may take to say so.
	pingAfter   = time.Minute
	pingTimeout = 15 * time.Second
	// maxFrame bounds what a client may make a connection of HTTP/2 keep for one frame;
	// it is the least that the protocol allows.
	maxFrame = 16 << 10
	// receiveStream and receiveConnection bound what is kept of bodies that the service
	// does not take as fast as the client sends them, by stream and by connection.
	receiveStream     = 64 << 10
	receiveConnection = 128 << 10
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
	// MaxConnections is the bound of the listener; the fields of requests that are
	// arriving are bounded in proportion. 0 is DefaultMaxConnections.
	MaxConnections int
	// MaxRequests bounds the requests in flight over all connections; 0 is
	// DefaultMaxRequests.
	MaxRequests int
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
	places    places
	mostHeads int64
	heads     atomic.Int64 // bytes of requests whose fields are arriving, by HTTP/1
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
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.MaxRequests == 0 {
		c.MaxRequests = DefaultMaxRequests
	}
	if c.Trusts == nil {
		c.Trusts = func(netip.Addr) bool { return false }
	}
	base, cancel := context.WithCancel(context.Background())
	s := &Server{
		proxy: p, cancel: cancel, tls: c.TLS, log: c.Log, trusts: c.Trusts, requestID: c.RequestID, access: c.Access, keyNames: c.KeyNames,
		places: places{bound: int64(c.MaxRequests)}, mostHeads: max(int64(c.MaxConnections)*headShare, 4*int64(c.MaxHeader)),
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // TLS ends below net/http.
	s.http = http.Server{
		Handler:   http.HandlerFunc(s.handle),
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
			MaxReadFrameSize:          maxFrame,
			MaxReceiveBufferPerStream: receiveStream, MaxReceiveBufferPerConnection: receiveConnection,
		},
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
	err := s.http.Serve(newConns(clients{ln, s}, s.tls, s.log))
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() {
		return nil
	}
	return fmt.Errorf("proxy: serving on %s: %w", ln.Addr(), err)
}
