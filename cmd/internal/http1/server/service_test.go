package server_test

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/server"
	"github.com/headgate/headgate/guard/report"
)

// patience bounds each wait of a test.
const patience = 10 * time.Second

// socket is a connection without layers above the descriptor.
type socket struct{ *net.TCPConn }

func (socket) Direct() bool          { return true }
func (socket) Received([]byte) error { return nil }
func (socket) BeforeWrite()          {}

func (s socket) Disconnected() bool {
	raw, err := s.SyscallConn()
	return err == nil && server.Disconnected(raw)
}

// service serves a handler on loopback. net/http serves the fallback connections.
type service struct {
	*server.Server

	address   string
	fallbacks chan net.Conn
	closed    chan struct{}
}

// standard gives a handler of net/http the fields of each request.
func standard(h http.HandlerFunc) func(http.ResponseWriter, *http.Request, *http1.List) {
	return func(w http.ResponseWriter, r *http.Request, fields *http1.List) {
		r.Header = fields.Header()
		h(w, r)
	}
}

// lendKey is the context key of a request's lent connection.
type lendKey struct{}

// serve starts a service that ends with the test.
func serve(t *testing.T, h http.HandlerFunc, change ...func(*server.Config)) *service {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{address: ln.Addr().String(), fallbacks: make(chan net.Conn), closed: make(chan struct{})}
	c := server.Config{
		Handler: standard(h), ReadHeader: patience, Idle: patience, MaxHeader: 8 << 10, CheckEvery: 10 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler), Fallback: s.fallback,
	}
	for _, f := range change {
		f(&c)
	}
	s.Server = server.New(c)
	odd := &http.Server{Handler: finishing(h), ReadHeaderTimeout: patience, ConnContext: withLent}
	var running sync.WaitGroup
	running.Go(func() { _ = odd.Serve(s) })
	running.Go(func() { s.accept(ln, &running) })
	t.Cleanup(func() {
		_ = ln.Close()
		s.Server.Close()
		_ = odd.Close()
		running.Wait()
	})
	return s
}

func withLent(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, lendKey{}, c)
}

// finishing returns a lent connection after the answer.
func finishing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if c, ok := r.Context().Value(lendKey{}).(*server.FallbackConn); ok && c.Lent() {
			_ = http.NewResponseController(w).Flush()
			c.Finish()
		}
	})
}

func (s *service) accept(ln net.Listener, running *sync.WaitGroup) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		raw := socket{conn.(*net.TCPConn)}
		running.Go(func() {
			s.Serve(&server.Client{Conn: raw.TCPConn, Raw: raw, Context: context.Background(), State: func(http.ConnState) {}})
		})
	}
}

func (s *service) fallback(_ *server.Client, f *server.FallbackConn, _ report.Path) {
	select {
	case s.fallbacks <- f:
	case <-s.closed:
		_ = f.Close()
	}
}

// Accept implements net.Listener.
func (s *service) Accept() (net.Conn, error) {
	select {
	case c := <-s.fallbacks:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (s *service) Addr() net.Addr { return &net.TCPAddr{} }

// Close implements net.Listener, for net/http.
func (s *service) Close() error {
	close(s.closed)
	return nil
}

// dial opens a connection that ends with the test.
func (s *service) dial(t *testing.T) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn), bufio.NewReader(conn)
}
