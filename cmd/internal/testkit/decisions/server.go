package decisions

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/cmd/internal/front/decisions"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
)

// Server is a running service.
type Server struct {
	*decisions.Service

	// At is its address.
	At string

	rpc *rpc.Server
}

// Start serves g at an address, "" for a free port, until the end of the test.
func Start(tb testing.TB, g *guard.Guard, at string) *Server {
	tb.Helper()
	if at == "" {
		at = "127.0.0.1:0"
	}
	socket, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", at)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Service: decisions.New(g, decisions.Options{}), At: socket.Addr().String()}
	s.rpc = rpc.New(rpc.Config{
		MaxStreams: 1000, MaxCallMemory: 256 << 20, HandshakeTimeout: time.Minute, Idle: time.Hour, WriteTimeout: time.Hour,
		Keepalive: time.Hour, KeepaliveTimeout: time.Hour, MaxAge: time.Hour, MaxAgeGrace: time.Hour,
		Services: []func(grpc.ServiceRegistrar){s.Register},
	})
	ended := make(chan error, 1)
	go func() { ended <- s.rpc.Serve(socket) }()
	tb.Cleanup(func() {
		s.Kill()
		if err := <-ended; err != nil {
			tb.Errorf("Serve returns %v", err)
		}
	})
	return s
}

// Stop drains the server, as headgate server does at SIGTERM. The error says that calls were cut off.
func (s *Server) Stop(ctx context.Context) error {
	s.Drain()
	return s.rpc.Drain(ctx)
}

// Kill closes the connections of the server.
func (s *Server) Kill() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.rpc.Drain(ended)
}
