package proxy

import (
	"net"
	"testing"
	"time"
)

// TestPressure: above the bound, the costliest connections are closed, and no more than the excess. Meanwhile, a client with a request in
// flight gets no other place.
func TestPressure(t *testing.T) {
	p := before(t, UpstreamConfig{URL: parsed(t, "http://127.0.0.1:1")})
	s, _ := start(t, p, nil, ServerConfig{})
	s.pressure.most = 100 << 20
	open := func() *clientConn {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		c := &clientConn{Conn: near, server: s, in: s.pressure}
		c.in.add(c)
		return c
	}
	isOpen := func(c *clientConn) bool {
		s.pressure.mu.Lock()
		defer s.pressure.mu.Unlock()
		_, found := s.pressure.conns[c]
		return found
	}
	plain, busy, arriving, multiplexed := open(), open(), open(), open()
	arriving.head.Store(60 << 10)
	multiplexed.multiplexed.Store(true)
	multiplexed.sinceRequest.Store(1 << 30) // A long body counts no more than a long header.
	for range 40 {
		s.places.take(busy, 1, time.Now())
	}
	if n := s.pressure.relieve(60 << 20); n != 0 || s.pressure.pressed.Load() {
		t.Errorf("at 60 percent, %d connections were closed", n)
	}
	s.pressure.least = 1 << 30
	if n := s.pressure.relieve(90 << 20); n != 0 || s.pressure.pressed.Load() {
		t.Errorf("%d connections were closed, and something else takes the memory", n)
	}
	s.pressure.least = 1 << 20
	s.pressure.most = 2 << 20 // 40 percent are 0.8 MiB.
	if n := s.pressure.relieve(3 << 20); n != 1 || isOpen(busy) || !isOpen(arriving) || !isOpen(multiplexed) || !isOpen(plain) {
		t.Errorf("%d connections were closed, want the one with 40 requests", n)
	}
	if s.places.take(plain, 1, time.Now()).refused || !s.places.take(plain, 1, time.Now()).refused {
		t.Error("under pressure, a client gets one place and no more")
	}
	if n := s.pressure.relieve(2400 << 10); n != 2 || isOpen(arriving) || isOpen(multiplexed) || !isOpen(plain) {
		t.Errorf("%d further connections were closed, want those with bytes of a header", n)
	}
	if n := p.traffic.ClosedForMemory.Load(); n != 3 {
		t.Errorf("%d closed connections are counted, want 3", n)
	}
}
