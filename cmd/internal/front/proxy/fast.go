package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/server"
	h2 "github.com/headgate/headgate/cmd/internal/http2"
	"github.com/headgate/headgate/guard/report"
)

// newFast returns the server of the fast path. net/http serves the requests that this server
// does not take.
func (s *Server) newFast(base context.Context, c *ServerConfig) *server.Server {
	for i := range s.fallbackListeners {
		s.fallbackListeners[i] = &fallbackListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	}
	s.base = context.WithValue(base, http.ServerContextKey, s.http) // The reverse proxy looks for it before it aborts an answer.
	fast := server.New(server.Config{
		Handler: s.serve, Fallback: s.fallBack, Log: c.Log,
		ReadHeader: c.ReadHeader, Idle: c.Idle, MaxHeader: c.MaxHeader, CheckEvery: c.checkEvery,
	})
	context.AfterFunc(base, fast.Close)
	return fast
}

// newHTTP2 returns the server of HTTP/2 on the fast path.
func (s *Server) newHTTP2(base context.Context, c *ServerConfig) *h2.Server {
	multiplexed := h2.New(h2.Config{
		Handler: http.HandlerFunc(s.handle), Idle: c.Idle, MaxHeader: c.MaxHeader, MaxStreams: maxStreams,
		PingAfter: pingAfter, PingTimeout: pingTimeout, ReceiveStream: receiveStream, ReceiveConnection: receiveConnection,
		Log: slog.New(clientFaults{c.Log.Handler()}),
	})
	context.AfterFunc(base, multiplexed.Close)
	return multiplexed
}

// divert serves a new connection on the fast path, if the current settings have it.
func (s *Server) divert(c *conn) bool {
	if !s.proxy.current.Load().fast {
		return false
	}
	c.path = report.PathFast
	served := c.Conn
	if !c.client.tells() {
		served = http1.NewAhead(served)
	}
	client := &server.Client{
		Conn: served, Raw: c.client,
		Context: context.WithValue(s.base, connKey{}, c),
		State:   func(state http.ConnState) { s.track(c, state) },
	}
	if c.secure != nil {
		client.Prepare = func() (report.Path, error) { return c.prepare(client) }
	}
	s.track(c, http.StateNew) // Drain counts the connection from now on.
	s.fast.Serve(client)
	return true
}

// prepare does the TLS handshake.
func (c *conn) prepare(client *server.Client) (report.Path, error) {
	if err := c.handshake(); err != nil {
		return report.PathFast, err
	}
	client.TLS = c.state
	if c.state.NegotiatedProtocol == "h2" {
		return report.PathHTTP2, nil
	}
	return report.PathFast, nil
}

// fallBack serves a connection that is not one of plain HTTP/1.1 requests.
func (s *Server) fallBack(client *server.Client, f *server.FallbackConn, why report.Path) {
	from, _ := client.Context.Value(connKey{}).(*conn)
	c := &conn{Conn: f, client: from.client, log: from.log, secure: from.secure, state: from.state, fallback: f, path: why}
	// A request of a lent connection has arrived, so Drain must wait for its end.
	if f.Lent() {
		from.client.used()
	} else {
		from.client.fresh.CompareAndSwap(from, c)
	}
	if why == report.PathHTTP2 && f.First() && !f.Lent() {
		go s.multiplex(c)
		return
	}
	s.giveAway(c)
}

// multiplex serves a connection of HTTP/2. A client that does not send its preface is served by net/http.
func (s *Server) multiplex(c *conn) {
	stop := context.AfterFunc(s.base, func() { _ = c.Close() }) // No server knows the connection yet.
	begins := c.fallback.Begins(http2Preface)
	stop()
	if !begins {
		s.giveAway(c)
		return
	}
	c.path = report.PathFast
	c.client.multiplex()
	s.http2.Serve(&h2.Client{
		Conn: c.fallback, Context: context.WithValue(s.base, connKey{}, c), State: func(state http.ConnState) { s.track(c, state) },
	})
}

// giveAway gives a connection of the fast path to net/http.
func (s *Server) giveAway(c *conn) {
	to := s.fallbackListeners[1]
	if c.fallback.First() {
		to = s.fallbackListeners[0]
	}
	if !to.give(c) {
		_ = c.Close()
		if !c.fallback.Lent() {
			s.track(c, http.StateClosed)
		}
	}
}

// serveFallbacks serves the connections of the fast path until the servers shut down.
func (s *Server) serveFallbacks() {
	for i, server := range [...]*http.Server{s.http, s.later} {
		s.servingFallbacks.Go(func() { _ = server.Serve(s.fallbackListeners[i]) }) // The error says that the server shuts down.
	}
}

// fallbackOf returns the connection that the fast path has given to net/http, or nil.
func fallbackOf(raw net.Conn) *server.FallbackConn {
	if c, ok := raw.(*conn); ok {
		return c.fallback
	}
	return nil
}

// fallbackListener is a listener whose connections come from the fast path.
type fallbackListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// give returns false if the listener is closed.
func (l *fallbackListener) give(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.closed:
		return false
	}
}

// Accept implements net.Listener.
func (l *fallbackListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *fallbackListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *fallbackListener) Addr() net.Addr { return &net.UnixAddr{Name: "fast path", Net: "unix"} }
