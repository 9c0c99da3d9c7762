package proxy

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/server"
	"github.com/headgate/headgate/cmd/internal/http1/socket"
)

// readAhead is how many bytes are read from an HTTP/2 client while a write to the client
// is pending. net/http queues a reply to each ping and to each refused stream, and the
// smallest frame has only 9 bytes.
const readAhead = 8 << 10

// clientConn is a client's connection below TLS. Each write times out after
// body_idle_timeout. The bound covers handlers, net/http's last flush, HTTP/2 frames and
// upgraded connections.
type clientConn struct {
	net.Conn

	server     *Server
	in         *pressure // has the connection until Close; nil in some tests
	firstPlace *place    // head of the list of this client's places; guarded by places.mu
	place      *place    // of the HTTP/1 request in flight; used by one goroutine
	hijacked   bool      // used by the same goroutine as place
	// sinceRequest has the bytes that an HTTP/2 client has sent since its last request began.
	sinceRequest atomic.Int64
	multiplexed  atomic.Bool  // the client uses HTTP/2
	unasked      atomic.Bool  // it uses HTTP/2, and its first request has not begun
	named        atomic.Bool  // bytes have arrived, so that RemoteAddr does not wait for a header of the PROXY protocol
	aborted      atomic.Bool  // the connection ends as soon as net/http closes it
	deadline     atomic.Int64 // write deadline set by net/http, in Unix nanoseconds; 0 means none

	fresh atomic.Pointer[conn] // the connection of the server, before its first request; nil afterwards

	heading atomic.Bool  // the header of an HTTP/1 request may be arriving
	head    atomic.Int64 // bytes of that header received so far
	waited  atomic.Int64 // nanoseconds that awaitMemory has blocked since the last header

	sending sync.Mutex     // held during a write
	writer  socket.Writer  // of Conn, if it has a descriptor; guarded by sending
	armed   http1.Deadline // of writes; guarded by sending
	moved   atomic.Bool    // net/http has set the deadline of writes, so armed is out of date
	failed  error          // error of the first failed write, guarded by sending; all later writes return it
	writing atomic.Bool    // a write is in progress
	ahead   int            // bytes read during the current write; used by the reader only
	preface preface        // of the bytes below TLS; used by the reader only
}

// Read implements net.Conn.
func (c *clientConn) Read(b []byte) (int, error) {
	if c.multiplexed.Load() {
		b = b[:c.mayRead(len(b))]
		n, err := c.Conn.Read(b)
		c.ahead += n
		c.sinceRequest.Add(int64(n))
		if c.unasked.Load() {
			c.awaitMemory()
		}
		return n, err
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		if err := c.received(b[:n]); err != nil {
			return 0, err
		}
	}
	return n, err
}

// received looks at bytes that were read before the client was known to use HTTP/2.
func (c *clientConn) received(b []byte) error {
	if !c.named.Load() {
		c.named.Store(true)
	}
	if c.preface.scan(b) {
		c.multiplex()
	}
	if c.heading.Load() {
		return c.arrived(b)
	}
	return nil
}

// mayRead returns how many of want bytes may be read now. After readAhead bytes it waits
// until the pending write ends or times out.
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

// Write implements net.Conn. After a failed write, all later writes fail at once.
// Otherwise TLS would wait up to 5 s more to send its close alert.
func (c *clientConn) Write(b []byte) (int, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	c.writing.Store(true)
	defer c.writing.Store(false)
	n, err := c.writeInTime(b)
	c.failed = err
	return n, err
}

// WriteLast implements server.LastWriter.
func (c *clientConn) WriteLast(b []byte) (int, error) {
	c.sending.Lock()
	c.writer.Last()
	c.sending.Unlock()
	return c.Write(b)
}

// writeInTime writes with a deadline. For HTTP/1 it sets the deadline only if the socket does
// not take all bytes at once, and the last deadline is much too early.
func (c *clientConn) writeInTime(b []byte) (int, error) {
	idle := c.server.proxy.current.Load().bodyIdle
	if idle <= 0 || c.multiplexed.Load() || c.deadline.Load() != 0 {
		c.BeforeWrite()
		return c.send(b)
	}
	done := 0
	if c.writer.Known() {
		n, err := c.writer.WriteNow(b)
		if n == len(b) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err //nolint:wrapcheck // because net/http compares the errors of a connection.
		}
		done = n // The connection takes no more now, or an old deadline is over.
	}
	n, err := c.waitInTime(b[done:], idle)
	return done + n, err
}

// waitInTime writes what the socket does not take at once.
func (c *clientConn) waitInTime(b []byte, idle time.Duration) (int, error) {
	if c.moved.Swap(false) {
		c.armed = http1.Deadline{}
	}
	now := time.Now()
	set, due := c.armed.Arm(now, idle)
	if set {
		_ = c.Conn.SetWriteDeadline(due)
	}
	n, err := c.send(b)
	if set || !errors.Is(err, os.ErrDeadlineExceeded) || c.armed.Fired(time.Now(), due) {
		return n, err
	}
	_ = c.Conn.SetWriteDeadline(due)
	more, err := c.send(b[n:])
	return n + more, err
}

// send writes to the connection, with the descriptor if there is one.
func (c *clientConn) send(b []byte) (int, error) {
	if c.writer.Known() {
		return c.writer.Write(b) //nolint:wrapcheck // because net/http compares the errors of a connection.
	}
	return c.Conn.Write(b)
}

// BeforeWrite implements server.Socket. It sets the deadline of the next write.
func (c *clientConn) BeforeWrite() {
	idle := c.server.proxy.current.Load().bodyIdle
	if idle <= 0 {
		return
	}
	c.armed = http1.Deadline{}
	end := time.Now().Add(idle)
	if set := c.deadline.Load(); set != 0 && set < end.UnixNano() {
		end = time.Unix(0, set)
	}
	_ = c.Conn.SetWriteDeadline(end)
}

// SetWriteDeadline implements net.Conn. Each write is also bounded by body_idle_timeout.
func (c *clientConn) SetWriteDeadline(t time.Time) error {
	c.note(t)
	defer c.moved.Store(true) // Later than the call, so that no write keeps a deadline that the call removes.
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *clientConn) SetDeadline(t time.Time) error {
	c.note(t)
	defer c.moved.Store(true)
	return c.Conn.SetDeadline(t)
}

func (c *clientConn) note(t time.Time) {
	if t.IsZero() {
		c.deadline.Store(0)
		return
	}
	c.deadline.Store(t.UnixNano())
}

// CloseWrite closes the sending side of the connection.
func (c *clientConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SyscallConn implements syscall.Conn.
func (c *clientConn) SyscallConn() (syscall.RawConn, error) {
	if able, ok := c.Conn.(syscall.Conn); ok {
		return able.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Direct implements server.Socket. A connection that reads a PROXY header has a buffer.
func (c *clientConn) Direct() bool {
	switch c.Conn.(type) {
	case interface{ Received() }, *net.TCPConn, *net.UnixConn:
		return true
	default:
		return false
	}
}

// Disconnected implements server.Socket.
func (c *clientConn) Disconnected() bool {
	if known, ok := c.Conn.(interface{ Disconnected() bool }); ok {
		return known.Disconnected()
	}
	raw, err := c.SyscallConn()
	return err == nil && server.Disconnected(raw)
}

// tells reports whether Disconnected works for this connection.
func (c *clientConn) tells() bool {
	if _, known := c.Conn.(interface{ Disconnected() bool }); known {
		return true
	}
	_, able := c.Conn.(syscall.Conn)
	return able && server.CanTell
}

// Received implements server.Socket.
func (c *clientConn) Received(b []byte) error {
	if listened, ok := c.Conn.(interface{ Received() }); ok {
		listened.Received()
	}
	return c.received(b)
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	if c.in != nil {
		c.in.remove(c)
	}
	c.asked()
	return c.Conn.Close()
}

// Trusted implements heap.Closable. It reports whether the server trusts the peer. A peer that has sent nothing is not trusted.
func (c *clientConn) Trusted() bool {
	return c.named.Load() && c.server.trusts(peer(c.RemoteAddr().String()))
}

// Abort implements heap.Closable. It closes the connection and discards unsent data.
func (c *clientConn) Abort() {
	c.aborted.Store(true)
	if listened, ok := c.Conn.(interface{ Abort() }); ok {
		listened.Abort()
		return
	}
	_ = c.Close()
}

// listened is a connection of package listen: at the bound of connections, a new one replaces an idle one.
type listened interface {
	Idle()
	Busy()
	Await(since time.Time)
}

// setIdle tells the listener whether the connection is idle.
func (c *clientConn) setIdle(idle bool) {
	conn, ok := c.Conn.(listened)
	switch {
	case !ok:
	case idle:
		conn.Idle()
	default:
		conn.Busy()
	}
}

// clients is a listener that wraps each connection in a clientConn.
type clients struct {
	net.Listener

	server *Server
}

// Accept implements net.Listener.
func (l clients) Accept() (net.Conn, error) {
	l.server.pressure.Await()
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &clientConn{Conn: conn, server: l.server, in: l.server.pressure}
	c.in.add(c)
	c.heading.Store(true)
	if c.Direct() {
		c.writer.Use(conn)
	}
	return c, nil
}

// used notes that the connection has had a request, or has ended.
func (c *clientConn) used() {
	if c.fresh.Load() != nil {
		c.fresh.Store(nil)
	}
}

// clientConnOf returns the clientConn under a connection of net/http, or nil.
func clientConnOf(raw net.Conn) *clientConn {
	served, ok := raw.(*conn)
	if !ok || served == nil {
		return nil
	}
	return served.client
}

// track is the server's ConnState hook. It counts open connections, remembers those
// without a request so far, and tells the listener which are idle. For HTTP/1 it runs
// after the last byte of each response is written.
func (s *Server) track(raw net.Conn, state http.ConnState) {
	c := clientConnOf(raw)
	fallback := fallbackOf(raw)
	if fallback != nil && (state == http.StateNew || state == http.StateClosed && fallback.Lent()) {
		return // The fast path counts the connection.
	}
	switch state {
	case http.StateNew:
		s.open.Add(1)
		if c != nil {
			served, _ := raw.(*conn)
			c.fresh.Store(served)
		}
	case http.StateActive:
		if c != nil {
			c.used()
			c.headDone()
			c.setIdle(false)
		}
	case http.StateIdle:
		if c != nil {
			s.placeOf(c)
			c.heading.Store(!c.multiplexed.Load())
			c.setIdle(false) // The connection may still await the body of a refused request.
			c.setIdle(true)
		}
		if fallback != nil && fallback.Lent() {
			fallback.Finish()
		}
	case http.StateHijacked:
		s.open.Add(-1)
		if c != nil {
			c.used()
			c.hijacked = true
		}
	case http.StateClosed:
		s.open.Add(-1)
		if c != nil {
			c.used()
			c.headDone()
			s.placeOf(c)
		}
	}
}

// placeOf releases the place of an HTTP/1 request that has ended.
func (s *Server) placeOf(c *clientConn) {
	if c.place != nil {
		s.release(c.place)
		c.place = nil
	}
}
