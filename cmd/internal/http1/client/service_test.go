package client_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// list returns the fields of h.
func list(h http.Header) *http1.List {
	l := new(http1.List)
	l.Load(h)
	return l
}

// service is a raw server. serve handles each connection in a goroutine of its own; the
// service closes the connection afterwards.
type service struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// peer is a connection at the service. number counts the connections from 0.
type peer struct {
	net.Conn

	number int
	in     *bufio.Reader
}

func serve(tb testing.TB, network string, handle func(p *peer)) *service {
	tb.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(tb.TempDir(), "s")
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		tb.Fatal(err)
	}
	s := &service{listener: listener}
	s.wait.Go(func() {
		for number := 0; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.wait.Go(func() {
				defer conn.Close()
				p := newPeer(conn)
				p.number = number
				handle(p)
			})
		}
	})
	tb.Cleanup(s.close)
	return s
}

func (s *service) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// accepted is how many connections the service accepted.
func (s *service) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *service) dial(ctx context.Context) (net.Conn, error) {
	address := s.listener.Addr()
	return new(net.Dialer).DialContext(ctx, address.Network(), address.String())
}

// client returns a client of the service. change may be nil.
func (s *service) client(tb testing.TB, change func(c *client.Config)) *client.Client {
	tb.Helper()
	config := client.Config{Dial: s.dial, MaxIdle: 8, IdleTimeout: time.Minute, MaxHeader: 64 << 10}
	if change != nil {
		change(&config)
	}
	c := client.New(config)
	tb.Cleanup(c.CloseIdleConnections)
	return c
}

// head reads the head of a request. ok is false at the end of the connection.
func (p *peer) head() (head string, ok bool) {
	var b strings.Builder
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return b.String(), false
		}
		b.WriteString(line)
		if line == "\r\n" {
			return b.String(), true
		}
	}
}

// answers returns a handler that answers every request with text.
func answers(text string) func(p *peer) {
	return func(p *peer) {
		for {
			if _, ok := p.head(); !ok {
				return
			}
			if _, err := p.Write([]byte(text)); err != nil {
				return
			}
		}
	}
}

func newPeer(conn net.Conn) *peer { return &peer{Conn: conn, in: bufio.NewReader(conn)} }
