package rpc

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/heap"
)

// lastHandshake bounds a handshake that is not finished when Drain begins.
const lastHandshake = 500 * time.Millisecond

// listener wraps the accepted connections.
type listener struct {
	net.Listener

	server *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, server: l.server}
	c.places, _ = accepted.(places)
	l.server.mu.Lock()
	l.server.conns[c] = struct{}{}
	draining := l.server.draining
	l.server.mu.Unlock()
	if draining {
		_ = c.Close()
	}
	return c, nil
}

// places is implemented by the connections of listen.Listener.
type places interface {
	Idle()
	Busy()
	Abort()
}

// conn is a connection below TLS. It learns from reads and writes what the server needs to know
// about its client. One goroutine reads, and one writes.
type conn struct {
	net.Conn

	server *Server
	places places // Nil for listeners other than listen.Listener.
	// active is set by reads, and cleared by each check.
	active atomic.Bool
	// writes counts begun and ended writes: it is odd during a write.
	writes atomic.Uint64

	mu     sync.Mutex // Guards the fields below, and the deadline until ready.
	ready  bool       // The handshakes are finished.
	hasten time.Time  // The deadline that hurry has set.
	closed bool

	// The memory of the calls in flight: what follows from their frames, and the responses that
	// were not sent. Writers hold mu.
	held, unread atomic.Int64
	kept         atomic.Int64 // what services keep for streams

	// Fields of check.
	seen  uint64    // The value of writes at the last check.
	since time.Time // When seen was new.
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.active.Load() {
		c.active.Store(true)
		if c.places != nil && c.isReady() {
			c.places.Busy()
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(1)
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn. grpc-go sets a deadline before the handshakes and removes it
// after them.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case t.IsZero():
		if c.ready = true; c.places != nil {
			c.places.Busy()
		}
	case !c.hasten.IsZero() && c.hasten.Before(t):
		t = c.hasten
	}
	return c.Conn.SetDeadline(t)
}

func (c *conn) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// hurry shortens the deadline of the handshakes.
func (c *conn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return
	}
	c.hasten = time.Now().Add(lastHandshake)
	_ = c.Conn.SetDeadline(c.hasten)
}

// check marks the connection as idle if it has read nothing since the last check, and ends a
// connection whose client does not read. A connection in its handshakes has its own timeout.
func (c *conn) check(now time.Time, writing time.Duration) {
	if !c.active.Swap(false) && c.places != nil {
		c.places.Idle()
	}
	writes := c.writes.Load()
	if writes != c.seen || writes%2 == 0 {
		c.seen, c.since = writes, now
		return
	}
	if now.Sub(c.since) >= writing {
		c.Abort()
	}
}

// hold changes the memory of the calls in flight that follows from their frames.
func (c *conn) hold(bytes int64) {
	if c.held.Load() == bytes {
		return
	}
	c.mu.Lock()
	if c.closed {
		bytes = 0
	}
	change := bytes - c.held.Swap(bytes)
	c.change(change)
}

// change adds to the memory of the calls of all connections. The caller has locked mu, and change
// unlocks it.
func (c *conn) change(bytes int64) {
	c.server.callMemory.Add(bytes)
	over := c.server.waiting.Add(bytes) > c.server.config.MaxCallMemory/2
	c.mu.Unlock()
	if over && bytes > 0 {
		c.server.evict()
	}
}

// Abort implements heap.Closable. It closes the connection and discards unsent data.
func (c *conn) Abort() {
	if c.places != nil {
		c.places.Abort()
	}
	_ = c.Close()
}

// Trusted implements heap.Closable.
func (c *conn) Trusted() bool {
	if c.server.config.Trusts == nil {
		return false
	}
	var peer netip.Addr
	if at, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		peer = at.AddrPort().Addr().Unmap()
	}
	return c.server.config.Trusts(peer)
}

// connectionCost is what a connection without calls takes, in bytes.
const connectionCost = 64 << 10

// Costs adds what each connection takes.
func (s *Server) Costs(to *heap.Costs) {
	for _, c := range s.open() {
		to.Add(c, connectionCost+c.held.Load()+c.unread.Load()+c.kept.Load(), 0, false)
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	c.closed = true
	c.change(-c.unread.Swap(0))
	c.hold(0)
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.conns, c)
	return err
}
