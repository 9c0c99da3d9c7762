package app

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
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/config/field"
)

// side is an HTTP server: admin.listen, admin.health, or server.http.
type side struct {
	setting string // The name of the setting that has the address.
	at      string // The address to listen on. "" means off.
	handler http.Handler
	gate    *access.Gate // The terms of this address of admin.listen; nil for other sides.

	connections, perAddress int // Bounds of the connections; a perAddress of 0 means no bound.
	exempt, admit           func(netip.Addr) bool
	body                    int64         // The bound of a request's body.
	longest                 time.Duration // The bound of a request's duration; 0 means that handlers end by themselves.
	idle                    time.Duration
	pressed                 func(net.Listener) net.Listener // waits for memory; nil for other sides than server.http
	files                   *certs.Server                   // Nil without TLS.

	socket *listen.Listener // Nil when the server is off or not open yet.
	framed *framedListener  // On the socket.
	server *http.Server
	// inFlight is the number of requests whose headers have arrived.
	inFlight atomic.Int64
}

func (s *side) open(ctx context.Context, inherited *listen.Inherited, log *slog.Logger) error {
	if s.at == "" {
		return nil
	}
	socket, err := listen.Open(ctx, listen.Config{
		Address: s.at, Inherited: inherited, WriteTimeout: adminWrite,
		MaxConnections: s.connections, PerAddress: s.perAddress, Exempt: s.exempt, Admit: s.admit,
	})
	if err != nil {
		return listenError(s.setting, err)
	}
	s.socket = socket
	s.server = &http.Server{
		Handler:           s.counted(oneFraming(bounded(s.handler, s.body, s.longest))),
		ReadHeaderTimeout: adminReadHeader, IdleTimeout: s.idle, MaxHeaderBytes: adminHeader,
		ConnState: tellIdle, ConnContext: withConn, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// net/http would answer OPTIONS * itself, and oneFraming would then count one request too few.
		DisableGeneralOptionsHandler: true,
	}
	s.server.Protocols.SetHTTP1(true) // A connection has one request at a time, which bounds its memory.
	s.framed = &framedListener{Listener: socket, log: log, trusts: s.exempt}
	if s.pressed != nil {
		s.framed.Listener = s.pressed(socket)
	}
	if s.files != nil {
		s.framed.tls = onlyHTTP1(s.files.Config())
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

func (s *side) serve() error {
	if err := s.server.Serve(s.framed); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("app: serving on %s: %w", s.socket.Addr(), err)
	}
	return nil
}

func (s *side) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// close shuts the server down, and closes the socket of a server that never served. The error says how many
// requests in flight were cut off.
func (s *side) close(ctx context.Context) (err error) {
	if s.socket == nil {
		return nil
	}
	// Shutdown also waits for new connections, which have no request to lose.
	if failed := s.server.Shutdown(ctx); failed != nil {
		if n := s.inFlight.Load(); n > 0 {
			err = fmt.Errorf("app: %s: cut off %s: %w", s.setting, field.Counted(n, "request"), failed)
		}
		_ = s.server.Close()
	}
	_ = s.socket.Close() // If the server served, it has closed the socket already.
	return err
}

// unlisten closes the socket of a server that serves. Requests in flight go on until close.
func (s *side) unlisten() {
	ended, end := context.WithCancel(context.Background())
	end()
	_ = s.server.Shutdown(ended) // Shutdown closes the socket before it looks at its context.
	_ = s.socket.Close()
}

func (s *side) address() string {
	if s.socket == nil {
		return ""
	}
	return s.socket.Addr().String()
}
