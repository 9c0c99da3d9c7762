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

	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/http1/server"
	h2 "github.com/headgate/headgate/cmd/internal/http2"
	"github.com/headgate/headgate/rule"
)

// Bounds for clients.
const (
	// DefaultMaxHeader bounds the header of a request, in bytes.
	DefaultMaxHeader = 64 << 10
	// DefaultMaxConnections is the default for ServerConfig.MaxConnections.
	DefaultMaxConnections = 16384
	// maxStreams bounds the requests in flight on one HTTP/2 connection.
	maxStreams = 250
	// pingAfter is the idle time after which the server pings an HTTP/2 client.
	// pingTimeout bounds the time for the reply.
	pingAfter   = time.Minute
	pingTimeout = 15 * time.Second
	// maxFrame bounds the memory for one HTTP/2 frame, in bytes. The protocol allows no
	// smaller value.
	maxFrame = 16 << 10
	// receiveStream and receiveConnection bound the buffered body bytes per stream and per
	// connection, while the service reads more slowly than the client sends.
	receiveStream     = 64 << 10
	receiveConnection = 128 << 10
)

// ServerConfig configures a Server.
type ServerConfig struct {
	// ReadHeader bounds the time from the first byte of a request to the end of its
	// header. For the first request, the time starts with the connection, and includes a
	// TLS handshake.
	ReadHeader time.Duration
	// Idle bounds the time between two requests on a connection.
	Idle time.Duration
	// MaxHeader bounds the header of a request, in bytes; 0 means DefaultMaxHeader.
	MaxHeader int
	// MaxConnections is the bound of the listener. The memory for headers that are arriving
	// is bounded in proportion. 0 means DefaultMaxConnections.
	MaxConnections int
	// MaxRequests bounds the requests in flight over all connections; 0 means
	// DefaultMaxRequests.
	MaxRequests int
	// Memory has the bounds of the process. Near its Most, the costliest connections are closed. With 0, none are.
	Memory heap.Bounds
	// TLS enables TLS, with HTTP/2 for clients that choose it. With nil, the server has no
	// TLS.
	TLS *tls.Config
	// Trusts reports whether a peer may set a request's id, and is a gateway of many users. A peer on a unix socket has the
	// zero Addr. With nil, no peer is trusted.
	Trusts func(peer netip.Addr) bool
	// RequestID is the header of a request's id, in canonical spelling; "" turns ids off.
	RequestID string
	// Access receives a line for each request. With nil, no lines are written.
	Access *accesslog.Log
	// Instance names this instance in Access.
	Instance string
	// KeyNames gives keys their names in Access. With nil, lines have no key.
	KeyNames *rule.KeyNames
	// Identity are parts of keys whose values lines of Access have in the form of KeyNames, and IdentityPlain others in clear. The
	// guard has them in guard.Config.Logged.
	Identity, IdentityPlain []rule.Part
	// Log receives the messages of net/http.
	Log *slog.Logger

	checkEvery time.Duration // shortened by tests; see server.Config
}

// Server serves a Proxy.
type Server struct {
	http      *http.Server
	later     *http.Server // for connections whose first request took the fast path
	proxy     *Proxy
	tls       *tls.Config // nil without TLS
	log       *slog.Logger
	trusts    func(netip.Addr) bool
	requestID string
	access    atomic.Pointer[access]
	entries   sync.Pool
	lists     sync.Pool
	places    *places
	pressure  *pressure
	mostHeads int64
	heads     atomic.Int64 // bytes of HTTP/1 headers that are arriving
	unasked   atomic.Int64 // clients of HTTP/2 whose first request has not begun
	cancel    context.CancelFunc

	open     atomic.Int64 // number of open connections, without upgraded ones
	draining atomic.Bool

	mu        sync.Mutex // guards listeners, and that a draining server gets no new one
	listeners []net.Listener
	serving   sync.WaitGroup

	fast              *server.Server
	http2             *h2.Server           // HTTP/2 on the fast path
	base              context.Context      //nolint:containedctx // because it has the values of all requests on the fast path.
	fallbackListeners [2]*fallbackListener // from the fast path to http and later
	startFallbacks    sync.Once            // starts serveFallbacks
	servingFallbacks  sync.WaitGroup       // until fallbackListeners are closed
}

// NewServer returns a Server for p. It serves HTTP/1.1 and HTTP/2. Without TLS, HTTP/2
// needs prior knowledge.
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
		proxy: p, cancel: cancel, tls: c.TLS, log: c.Log, trusts: c.Trusts, requestID: c.RequestID,
		places: newPlaces(int64(c.MaxRequests), time.Now()), mostHeads: max(int64(c.MaxConnections)*headShare, 4*int64(c.MaxHeader)),
	}
	s.SetAccess(AccessConfig{c.Access, c.Instance, c.KeyNames, c.Identity, c.IdentityPlain})
	s.pressure = newPressure(s, &c)
	s.http = s.newHTTP(base, &c, true)
	s.later = s.newHTTP(base, &c, false)
	s.fast = s.newFast(base, &c)
	s.http2 = s.newHTTP2(base, &c)
	return s
}

// access has the access log, and the names of its keys.
type access struct {
	log   *accesslog.Log
	names *rule.KeyNames // nil names no key
	// instance is "" without a name.
	instance string
	parts    []loggedPart
}

// AccessConfig has the fields of ServerConfig about the access log.
type AccessConfig struct {
	Access                  *accesslog.Log
	Instance                string
	KeyNames                *rule.KeyNames
	Identity, IdentityPlain []rule.Part
}

// SetAccess replaces the fields of ServerConfig about the access log. Requests in flight write their lines to the new
// log. Those that began without a log write none.
func (s *Server) SetAccess(c AccessConfig) {
	a := &access{log: c.Access, names: c.KeyNames, instance: c.Instance}
	if c.KeyNames != nil {
		a.add(c.Identity, c.KeyNames)
	}
	a.add(c.IdentityPlain, rule.PlainKeyNames())
	s.access.Store(a)
}

// newHTTP returns a server of net/http. Without HTTP/2 it does not look for the preface of
// HTTP/2, and answers a malformed request that is shorter.
func (s *Server) newHTTP(base context.Context, c *ServerConfig, http2 bool) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(http2) // TLS ends below net/http, which therefore sees plain HTTP/2.
	return &http.Server{
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
		// Rules count OPTIONS * like any other request, and the access log has a line for it.
		DisableGeneralOptionsHandler: true,
	}
}

// Serve serves connections from ln until Drain, then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		_ = ln.Close()
		return nil
	}
	s.listeners = append(s.listeners, ln)
	s.serving.Add(1)
	s.startFallbacks.Do(s.serveFallbacks)
	s.mu.Unlock()
	defer s.serving.Done()
	err := s.http.Serve(newConns(clients{ln, s}, s.tls, s.log, s.divert))
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() {
		return nil
	}
	return fmt.Errorf("proxy: serving on %s: %w", ln.Addr(), err)
}
