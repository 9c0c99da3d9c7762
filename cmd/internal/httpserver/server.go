// Package httpserver serves HTTP/1.1 beside the proxy: the section admin, server.http, and listeners for counters. A connection has
// bounds of time, memory and bodies, and a request with two framings is refused.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/config/field"
)

// Bounds of the servers and of their clients.
const (
	readHeader = 5 * time.Second
	maxHeader  = 16 << 10
	// ReadBody bounds the time to read a body.
	ReadBody = 5 * time.Second
	// write bounds how long a client may leave 64 KiB of an answer unread.
	write = 10 * time.Second
)

// Bounds of the requests of operators: those of the section admin, and of a listener for counters.
const (
	OperatorIdle = time.Minute
	// OperatorBody bounds the body of a request. Of the handlers of pprof, only symbol reads a body.
	OperatorBody = 64 << 10
	// OperatorLongest bounds the duration of a request, profiles and traces included.
	OperatorLongest = 5 * time.Minute
	// OperatorDrain is long enough for a scrape in flight. A long profile is cut off.
	OperatorDrain = time.Second
)

// Server is an HTTP server: admin.listen, admin.health, server.http, or a listener for counters.
type Server struct {
	Setting string // The name of the setting that has the address.
	Address string // The address to listen on. "" means off.
	Handler http.Handler
	Gate    *access.Gate // The terms of this address of admin.listen; nil for other servers.

	Connections, PerAddress int // Bounds of the connections; a PerAddress of 0 means no bound.
	Exempt, Admit           func(netip.Addr) bool
	Body                    int64         // The bound of a request's body.
	Longest                 time.Duration // The bound of a request's duration; 0 means that handlers end by themselves.
	Idle                    time.Duration
	Pressed                 func(net.Listener) net.Listener // Waits for memory; nil for other servers than server.http.
	Files                   *certs.Server                   // Nil without TLS.

	socket *listen.Listener // Nil when the server is off or not open yet.
	framed *framedListener  // On the socket.
	server *http.Server
	// inFlight is the number of requests whose headers have arrived.
	inFlight atomic.Int64
}

// Open opens the socket.
func (s *Server) Open(ctx context.Context, inherited *listen.Inherited, log *slog.Logger) error {
	if s.Address == "" {
		return nil
	}
	socket, err := listen.Open(ctx, listen.Config{
		Address: s.Address, Inherited: inherited, WriteTimeout: write,
		MaxConnections: s.Connections, PerAddress: s.PerAddress, Exempt: s.Exempt, Admit: s.Admit,
	})
	if err != nil {
		return component.ListenError(s.Setting, err)
	}
	s.socket = socket
	s.server = &http.Server{
		Handler:           s.counted(oneFraming(bounded(s.Handler, s.Body, s.Longest))),
		ReadHeaderTimeout: readHeader, IdleTimeout: s.Idle, MaxHeaderBytes: maxHeader,
		ConnState: tellIdle, ConnContext: withConn, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// net/http would answer OPTIONS * itself, and oneFraming would then count one request too few.
		DisableGeneralOptionsHandler: true,
	}
	s.server.Protocols.SetHTTP1(true) // A connection has one request at a time, which bounds its memory.
	s.framed = &framedListener{Listener: socket, log: log, trusts: s.Exempt}
	if s.Pressed != nil {
		s.framed.Listener = s.Pressed(socket)
	}
	if s.Files != nil {
		s.framed.tls = onlyHTTP1(s.Files.Config())
	}
	return nil
}

// onlyHTTP1 returns a configuration of a certs.Server that does not offer HTTP/2.
func onlyHTTP1(c *tls.Config) *tls.Config {
	newest, own := c.GetConfigForClient, c.Clone()
	own.NextProtos = []string{"http/1.1"}
	own.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now, err := newest(hello)
		if err != nil {
			return nil, err
		}
		now = now.Clone()
		now.NextProtos = own.NextProtos
		return now, nil
	}
	return own
}

// Serve serves until Close.
func (s *Server) Serve() error {
	if err := s.server.Serve(s.framed); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("app: serving on %s: %w", s.socket.Addr(), err)
	}
	return nil
}

func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// Close shuts the server down, and closes the socket of a server that never served. The error says how many
// requests in flight were cut off.
func (s *Server) Close(ctx context.Context) (err error) {
	if s.socket == nil {
		return nil
	}
	// Shutdown also waits for new connections, which have no request to lose.
	if failed := s.server.Shutdown(ctx); failed != nil {
		if n := s.inFlight.Load(); n > 0 {
			err = fmt.Errorf("app: %s: cut off %s: %w", s.Setting, field.Counted(n, "request"), failed)
		}
		_ = s.server.Close()
	}
	_ = s.socket.Close() // If the server served, it has closed the socket already.
	return err
}

// Unlisten closes the socket of a server that serves. Requests in flight go on until Close.
func (s *Server) Unlisten() {
	ended, end := context.WithCancel(context.Background())
	end()
	_ = s.server.Shutdown(ended) // Shutdown closes the socket before it looks at its context.
	_ = s.socket.Close()
}

// Opened reports whether the server has a socket.
func (s *Server) Opened() bool { return s.socket != nil }

// At is the address that the server listens on, with the actual port; "" when it is off.
func (s *Server) At() string {
	if s.socket == nil {
		return ""
	}
	return s.socket.Addr().String()
}

// Stats counts the connections of a server that is open.
func (s *Server) Stats() listen.Stats { return s.socket.Stats() }

// InFlight counts the requests whose headers have arrived.
func (s *Server) InFlight() int64 { return s.inFlight.Load() }

// Costs adds what each connection takes.
func (s *Server) Costs(to *heap.Costs) { s.framed.costs(to) }
