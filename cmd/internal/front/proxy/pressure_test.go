package proxy

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/heap"
)

// TestPressure: above the bound, the costliest connections are closed, and no more than the excess. Meanwhile, a client with a request in
// flight gets no other place.
func TestPressure(t *testing.T) {
	p := before(t, UpstreamConfig{URL: parsed(t, "http://127.0.0.1:1")})
	s, _ := start(t, p, nil, ServerConfig{})
	s.pressure.Most = 100 << 20
	hold := holder(t, s)
	open := func() *clientConn { return hold(netip.MustParseAddrPort("192.0.2.1:7")) }
	isOpen := func(c *clientConn) bool { return c.Conn.(*heldConn).order == 0 }
	plain, busy, arriving, multiplexed := open(), open(), open(), open()
	arriving.head.Store(60 << 10)
	multiplexed.multiplexed.Store(true)
	multiplexed.sinceRequest.Store(1 << 30) // A long body counts no more than a long header.
	for range 40 {
		s.places.take(busy, 1, time.Now())
	}
	if n := s.pressure.Relieve(60 << 20); n != 0 || s.pressure.Pressed() {
		t.Errorf("at 60 percent, %d connections were closed", n)
	}
	s.pressure.Least = 1 << 30
	if n := s.pressure.Relieve(90 << 20); n != 0 || s.pressure.Pressed() {
		t.Errorf("%d connections were closed, and something else takes the memory", n)
	}
	s.pressure.Least = 1 << 20
	s.pressure.Most = 2 << 20 // 40 percent are 0.8 MiB.
	if n := s.pressure.Relieve(3 << 20); n != 1 || isOpen(busy) || !isOpen(arriving) || !isOpen(multiplexed) || !isOpen(plain) {
		t.Errorf("%d connections were closed, want the one with 40 requests", n)
	}
	if n := s.pressure.Relieve(3 << 20); n != 0 {
		t.Errorf("%d connections were closed, and the memory of one that ends is enough", n)
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	if s.places.take(plain, 1, time.Now()).refused || !s.places.take(plain, 1, time.Now()).refused {
		t.Error("under pressure, a client gets one place and no more")
	}
	if n := s.pressure.Relieve(2400 << 10); n != 2 || isOpen(arriving) || isOpen(multiplexed) || !isOpen(plain) {
		t.Errorf("%d further connections were closed, want those with bytes of a header", n)
	}
	if n := p.traffic.ClosedForMemory.Load(); n != 3 {
		t.Errorf("%d closed connections are counted, want 3", n)
	}
}

// TestPressureSparesServedClients: connections with many requests, with bytes that do not arrive, with bytes of a header, and idle ones
// are closed before clients that await one answer each, although these take more memory than most of them.
func TestPressureSparesServedClients(t *testing.T) {
	p := before(t, UpstreamConfig{URL: parsed(t, "http://127.0.0.1:1")})
	s, _ := start(t, p, nil, ServerConfig{})
	s.pressure.Most, s.pressure.Least = 1<<20, 1<<10
	hold := holder(t, s)
	open := func() *clientConn { return hold(netip.AddrPort{}) }
	order := func(c *clientConn) int { return c.Conn.(*heldConn).order }
	served, multiplexed, idle, arriving, sending, greedy := open(), open(), open(), open(), open(), open()
	multiplexed.multiplexed.Store(true)
	arriving.head.Store(1 << 10)
	for _, c := range []*clientConn{served, multiplexed, sending, greedy, greedy, greedy} {
		s.places.take(c, 1, time.Now())
	}
	sending.firstPlace.startBodyWait(time.Now())
	if n := s.pressure.Relieve(2 << 20); n != 6 {
		t.Fatalf("%d connections were closed, want all", n)
	}
	first := []int{order(greedy), order(sending), order(arriving), order(idle)}
	if !slices.Equal(first, []int{1, 2, 3, 4}) || min(order(served), order(multiplexed)) != 5 {
		t.Errorf("many requests, a slow body, a header, idle: closed as %d, want 1 to 4", first)
	}
}

// TestPressureAndGateways: connections of trusted peers are closed after all others, and are given places under pressure.
func TestPressureAndGateways(t *testing.T) {
	gateway, stranger := netip.MustParseAddrPort("192.0.2.1:7"), netip.MustParseAddrPort("192.0.2.2:7")
	p := before(t, UpstreamConfig{URL: parsed(t, "http://127.0.0.1:1")})
	s, _ := start(t, p, nil, ServerConfig{Trusts: func(from netip.Addr) bool { return from == gateway.Addr() }})
	s.pressure.Most, s.pressure.Least = 100<<20, 1<<20
	hold := holder(t, s)
	trusted, other, silent := hold(gateway), hold(stranger), hold(gateway)
	silent.Conn.(*heldConn).unnamed = true // The header of the PROXY protocol has not arrived.
	for _, c := range []*clientConn{trusted, other} {
		if err := c.received([]byte("GET / HTTP/1.1\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		s.places.take(trusted, 1, time.Now())
	}
	s.places.take(other, 1, time.Now())
	s.places.pressed = func() bool { return true }
	if s.places.take(trusted, 1, time.Now()).refused || !s.places.take(other, 1, time.Now()).refused {
		t.Error("under pressure, the gateway gets no place, or another client with a request does")
	}
	s.pressure.Most = 2 << 20 // 40 percent are 0.8 MiB.
	if n := s.pressure.Relieve(s.pressure.Most/100*heap.High + 1); n != 3 {
		t.Errorf("%d connections were closed, want all: the others are not enough", n)
	}
	closed := trusted.Conn.(*heldConn).order
	if first := other.Conn.(*heldConn).order; first > closed || silent.Conn.(*heldConn).order > closed {
		t.Error("the gateway's connection was closed before others")
	}
}

// TestUnfinishedHeadsAwaitMemory: while connections are closed, the rest of a request that arrives is not read, by HTTP/1 and HTTP/2.
// Whole requests, trusted peers and closed connections do not wait.
func TestUnfinishedHeadsAwaitMemory(t *testing.T) {
	gateway, stranger := netip.MustParseAddrPort("192.0.2.1:7"), netip.MustParseAddrPort("192.0.2.2:7")
	p := before(t, UpstreamConfig{URL: parsed(t, "http://127.0.0.1:1")})
	s, _ := start(t, p, nil, ServerConfig{Trusts: func(from netip.Addr) bool { return from == gateway.Addr() }})
	s.pressure.Most = 1 << 20
	hold := holder(t, s)
	press := func() { s.pressure.Relieve(1 << 20) }
	open := func(from netip.AddrPort) *clientConn {
		c := hold(from)
		c.heading.Store(true)
		return c
	}
	read := func(c *clientConn, sent string) chan error {
		done := make(chan error, 1)
		go func() { done <- c.received([]byte(sent)) }()
		return done
	}
	press()
	for name, done := range map[string]chan error{
		"a whole request":            read(open(stranger), "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"a request with a body":      read(open(stranger), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na"),
		"a request of a gateway":     read(open(gateway), "GET / HTTP/1.1\r\n"),
		"a connection that is ended": read(aborted(open(stranger)), "GET / HTTP/1.1\r\n"),
	} {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, sent := range map[string]string{
		"HTTP/1": "GET / HTTP/1.1\r\n", "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		press()
		c := open(stranger)
		done := read(c, sent)
		select {
		case err := <-done:
			done <- err
			t.Errorf("%s: a request that arrives is read although connections are closed", name)
		case <-time.After(100 * time.Millisecond):
		}
		s.pressure.Relieve(0)
		if err := <-done; err != nil || c.waited.Load() <= 0 {
			t.Errorf("%s: got %v, %v after a wait", name, err, time.Duration(c.waited.Load()))
		}
		if c.multiplexed.Load() != (s.unasked.Load() > 0) {
			t.Errorf("%s: %d clients of HTTP/2 without a request", name, s.unasked.Load())
		}
		c.headDone()
		_ = c.Close()
		if s.unasked.Load() != 0 || c.waited.Load() != 0 {
			t.Errorf("%s: %d clients of HTTP/2 without a request after the end", name, s.unasked.Load())
		}
	}
}

func aborted(c *clientConn) *clientConn {
	c.Abort()
	return c
}

// heldConn is like a connection of package listen: after Abort, it is open until net/http closes it.
type heldConn struct {
	net.Conn

	from    net.Addr
	unnamed bool // RemoteAddr would wait
	aborts  *int // of all connections
	order   int  // of its Abort among all, or 0
}

func (c *heldConn) Abort() {
	*c.aborts++
	c.order = *c.aborts
}

func (c *heldConn) RemoteAddr() net.Addr {
	if c.unnamed {
		panic("RemoteAddr would wait for the header of the PROXY protocol")
	}
	return c.from
}

// holder returns a function that opens connections of s.
func holder(t *testing.T, s *Server) func(from netip.AddrPort) *clientConn {
	t.Helper()
	aborts := new(int)
	return func(from netip.AddrPort) *clientConn {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		c := &clientConn{Conn: &heldConn{Conn: near, from: net.TCPAddrFromAddrPort(from), aborts: aborts}, server: s, in: s.pressure}
		c.in.add(c)
		return c
	}
}
