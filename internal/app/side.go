package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/listen"
)

// side is a server for the operator: admin.listen or admin.health.
type side struct {
	setting string // The name of the setting that has the address.
	at      string // The address to listen on. "" means off.
	handler http.Handler

	socket net.Listener // Nil when the server is off or not open yet.
	server *http.Server
}

func (s *side) open(ctx context.Context, inherited *listen.Inherited, log *slog.Logger) error {
	if s.at == "" {
		return nil
	}
	socket, err := listen.Open(ctx, listen.Config{
		Address: s.at, Inherited: inherited, MaxConnections: config.AdminConnections, WriteTimeout: adminWrite,
	})
	if err != nil {
		return fmt.Errorf("app: %s: %w", s.setting, err)
	}
	s.socket = socket
	s.server = &http.Server{
		Handler: bounded(s.handler), ReadHeaderTimeout: adminReadHeader, IdleTimeout: adminIdle, MaxHeaderBytes: adminHeader,
		ConnState: tellIdle,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return nil
}

func (s *side) serve() error {
	if err := s.server.Serve(s.socket); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("app: serving on %s: %w", s.socket.Addr(), err)
	}
	return nil
}

// close shuts the server down, and closes the socket of a server that never served.
func (s *side) close(ctx context.Context) {
	if s.socket == nil {
		return
	}
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close()
	}
	_ = s.socket.Close() // If the server served, it has closed the socket already.
}

func (s *side) address() string {
	if s.socket == nil {
		return ""
	}
	return s.socket.Addr().String()
}
