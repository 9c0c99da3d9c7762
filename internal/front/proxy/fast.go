package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/headgate/headgate/internal/http1/server"
	"github.com/headgate/headgate/report"
)

// newFast returns the server of the fast path. It hands the requests that it does not take
// to net/http.
func (s *Server) newFast(base context.Context, c *ServerConfig) *server.Server {
	for i := range s.handovers {
		s.handovers[i] = &handover{conns: make(chan net.Conn), closed: make(chan struct{})}
	}
	s.base = context.WithValue(base, http.ServerContextKey, s.http) // The reverse proxy looks for it before it aborts an answer.
	fast := server.New(server.Config{
		Handler: http.HandlerFunc(s.handle), Fallback: s.handOver, Log: c.Log,
		ReadHeader: c.ReadHeader, Idle: c.Idle, MaxHeader: c.MaxHeader, LookEvery: c.lookEvery,
	})
	context.AfterFunc(base, fast.Close)
	return fast
}

// divert serves a new connection on the fast path, if the current settings have it.
func (s *Server) divert(c *conn) bool {
	if !s.proxy.current.Load().fast {
		return false
	}
	c.path = report.PathFast
	client := &server.Client{
		Conn: c.Conn, Raw: c.client,
		Context: context.WithValue(s.base, connKey{}, c),
		State:   func(state http.ConnState) { s.track(c, state) },
	}
	client.Prepare = func() (report.Path, error) { return c.prepare(client) }
	s.track(c, http.StateNew) // Drain counts the connection from now on.
	go s.fast.Serve(client)
	return true
}

// prepare does the TLS handshake.
func (c *conn) prepare(client *server.Client) (report.Path, error) {
	if c.secure == nil {
		return report.PathFast, nil
	}
	if err := c.handshake(); err != nil {
		return report.PathFast, err
	}
	client.TLS = c.state
	if c.state.NegotiatedProtocol == "h2" {
		return report.PathHTTP2, nil
	}
	return report.PathFast, nil
}

// handOver gives a connection of the fast path to net/http.
func (s *Server) handOver(client *server.Client, h *server.Handed, why report.Path) {
	from, _ := client.Context.Value(connKey{}).(*conn)
	c := &conn{Conn: h, client: from.client, log: from.log, secure: from.secure, state: from.state, handed: h, path: why}
	// A request of a lent connection has arrived, so Drain must wait for its end.
	if _, fresh := s.fresh.LoadAndDelete(from); fresh && !h.Lent() {
		s.fresh.Store(c, nil)
	}
	to := s.handovers[1]
	if h.First() {
		to = s.handovers[0]
	}
	if !to.give(c) {
		_ = c.Close()
		if !h.Lent() {
			s.track(c, http.StateClosed)
		}
	}
}

// serveHandovers serves the connections of the fast path until the servers shut down.
func (s *Server) serveHandovers() {
	for i, server := range [...]*http.Server{s.http, s.later} {
		s.handed.Go(func() { _ = server.Serve(s.handovers[i]) }) // The error says that the server shuts down.
	}
}

// handedOf returns what the fast path has handed to net/http, or nil.
func handedOf(of net.Conn) *server.Handed {
	if c, ok := of.(*conn); ok {
		return c.handed
	}
	return nil
}

// handover is a listener whose connections come from the fast path.
type handover struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// give returns false if the listener is closed.
func (h *handover) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.closed:
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return &net.UnixAddr{Name: "fast path", Net: "unix"} }
