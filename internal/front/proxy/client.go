package proxy

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// readAhead is how much is read from a client of HTTP/2 while it does not take what
// is written to it: net/http queues an answer to each ping and to each stream that it
// refuses, and the smallest frame has 9 bytes.
const readAhead = 8 << 10

// clientConn is the connection of a client, below TLS. Each write to it ends within
// body_idle_timeout, whoever writes: a handler, net/http's last flush, HTTP/2's
// frames, a connection that has been upgraded.
type clientConn struct {
	net.Conn

	server      *Server
	held        *place       // the first of its places, under places.mu
	place       *place       // of the request in flight, with HTTP/1; one goroutine's
	hijacked    bool         // as place
	multiplexed atomic.Bool  // it speaks HTTP/2
	deadline    atomic.Int64 // of writes, as net/http sets it, in nanoseconds of Unix time; 0 is none

	heading atomic.Bool  // the fields of a request of HTTP/1 may be arriving
	head    atomic.Int64 // bytes of them that have arrived

	sending sync.Mutex  // held while something is being written
	failed  error       // of the write that failed, under sending; the connection has no other after that
	writing atomic.Bool // sending is held
	ahead   int         // bytes read during one write; the reader's
	preface preface     // of what is read below TLS; the reader's
}

// Read implements net.Conn.
func (c *clientConn) Read(b []byte) (int, error) {
	if c.multiplexed.Load() {
		b = b[:c.mayRead(len(b))]
		n, err := c.Conn.Read(b)
		c.ahead += n
		return n, err
	}
	n, err := c.Conn.Read(b)
	if c.preface.scan(b[:n]) {
		c.multiplexed.Store(true)
	}
	if n > 0 && c.heading.Load() {
		if err := c.arrived(n); err != nil {
			return 0, err
		}
	}
	return n, err
}

// mayRead tells how much of want may be read now. Beyond readAhead it waits until the
// client takes what is being written, or the write times out.
func (c *clientConn) mayRead(want int) int {
	if !c.writing.Load() {
		c.ahead = 0
	}
	if c.ahead >= readAhead {
		c.sending.Lock()
		c.ahead = 0
		c.sending.Unlock()
	}
	return min(want, readAhead-c.ahead)
}

// Write implements net.Conn. After a write that failed, all others fail at once: TLS would
// wait once more, up to 5 s, to say that it closes the connection.
func (c *clientConn) Write(b []byte) (int, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	if idle := c.server.proxy.current.Load().bodyIdle; idle > 0 {
		end := time.Now().Add(idle)
		if set := c.deadline.Load(); set != 0 && set < end.UnixNano() {
			end = time.Unix(0, set)
		}
		_ = c.Conn.SetWriteDeadline(end)
	}
	c.writing.Store(true)
	defer c.writing.Store(false)
	n, err := c.Conn.Write(b)
	c.failed = err
	return n, err
}

// SetWriteDeadline implements net.Conn. The bound of each write holds besides.
func (c *clientConn) SetWriteDeadline(t time.Time) error {
	c.note(t)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *clientConn) SetDeadline(t time.Time) error {
	c.note(t)
	return c.Conn.SetDeadline(t)
}

func (c *clientConn) note(t time.Time) {
	if t.IsZero() {
		c.deadline.Store(0)
		return
	}
	c.deadline.Store(t.UnixNano())
}

// CloseWrite tells the client that nothing more comes.
func (c *clientConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// abort closes the connection and drops what the client has not read.
func (c *clientConn) abort() {
	if listened, ok := c.Conn.(interface{ Abort() }); ok {
		listened.Abort()
		return
	}
	_ = c.Close()
}

// setIdle tells the listener whether a request is in flight.
func (c *clientConn) setIdle(idle bool) {
	listened, ok := c.Conn.(interface {
		Idle()
		Busy()
	})
	switch {
	case !ok:
	case idle:
		listened.Idle()
	default:
		listened.Busy()
	}
}

// clients is a listener that makes a clientConn of each connection.
type clients struct {
	net.Listener

	server *Server
}

// Accept implements net.Listener.
func (l clients) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &clientConn{Conn: conn, server: l.server}
	c.heading.Store(true)
	return c, nil
}

// below gives the client under a connection of net/http; nil if there is none.
func below(of net.Conn) *clientConn {
	served, ok := of.(*conn)
	if !ok || served == nil {
		return nil
	}
	inner := served.Conn
	if served.secure != nil {
		inner = served.secure.NetConn()
	}
	c, _ := inner.(*clientConn)
	return c
}

// track counts connections, knows those that have not sent a request, and tells the
// listener which are idle. It runs after each request of HTTP/1, when its last byte
// has been written.
func (s *Server) track(conn net.Conn, state http.ConnState) {
	c := below(conn)
	switch state {
	case http.StateNew:
		s.open.Add(1)
		s.fresh.Store(conn, nil)
	case http.StateActive:
		s.fresh.Delete(conn)
		if c != nil {
			c.whole()
			c.setIdle(false)
		}
	case http.StateIdle:
		if c != nil {
			s.placeOf(c)
			c.heading.Store(!c.multiplexed.Load())
			c.setIdle(true)
		}
	case http.StateHijacked:
		s.fresh.Delete(conn)
		s.open.Add(-1)
		if c != nil {
			c.hijacked = true
		}
	case http.StateClosed:
		s.fresh.Delete(conn)
		s.open.Add(-1)
		if c != nil {
			c.whole()
			s.placeOf(c)
		}
	}
}

// placeOf releases the place of a client of HTTP/1 whose request is over.
func (s *Server) placeOf(c *clientConn) {
	if c.place != nil {
		s.release(c.place)
		c.place = nil
	}
}
