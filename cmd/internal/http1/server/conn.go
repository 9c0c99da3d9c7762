package server

import (
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard/report"
)

// conn is a connection that is served.
type conn struct {
	*Client

	server        *Server
	began         time.Time // when serve began
	since         time.Time // when the time for the current header began; zero if it came at once
	remote        string
	raw           syscall.RawConn // to wait for a request without a buffer; nil if not possible
	idle          http1.Deadline
	deadlineMoved atomic.Bool  // the handler has set the deadline of reads
	held          *transaction // with bytes behind the last request
	posted        bool         // the last request had the method POST
	givenAway     bool         // Fallback keeps the connection

	// The results of tryRead, which runs in raw.Read.
	tryReadFunc func(fd uintptr) bool
	got         *transaction
	gotError    error
	now         bool // tryRead does not wait

	progress    atomic.Int32  // of the request: noRequest, newRequest or slowRequest
	mu          sync.Mutex    // guards the fields below
	transaction *transaction  // of the request in progress; nil while there is none
	lent        *FallbackConn // that Fallback serves; nil while there is none
}

// serve serves requests until the connection ends.
func (c *conn) serve() {
	defer func() { c.leave(recover()) }()
	c.began = time.Now()
	if c.Prepare == nil {
		c.findSocket()
	}
	if c.raw == nil { // Else the first read does not wait.
		c.arm(c.began, c.server.config.ReadHeader)
	}
	if at := c.Conn.RemoteAddr(); at != nil {
		c.remote = at.String()
	}
	if c.Prepare != nil {
		why, err := c.Prepare()
		if err != nil {
			return
		}
		if why != report.PathFast {
			c.since = c.began
			c.giveAway(&FallbackConn{Conn: c.Conn, first: true}, why)
			return
		}
	}
	for first, more := true, true; more; first = false {
		more = c.next(first)
	}
}

// leave closes the connection. A panic of a handler, whose value is fault, ends only its
// connection.
func (c *conn) leave(fault any) {
	if fault != nil && fault != http.ErrAbortHandler { //nolint:errorlint // A handler panics with this very value.
		c.server.config.Log.Error("panic while serving a request", "remote", c.remote, "panic", fault, "stack", string(debug.Stack()))
	}
	c.mu.Lock()
	t := c.transaction
	c.transaction = nil
	c.mu.Unlock()
	if t != nil { // The handler has not returned, so the transaction is not used again.
		t.ctx.end()
		_ = t.writer.send()
	}
	if !c.givenAway {
		_ = c.Conn.Close()
		c.State(http.StateClosed)
	}
	c.server.remove(c)
}

// findSocket finds the descriptor on which the goroutine can wait without a buffer.
func (c *conn) findSocket() {
	if !canTryRead || c.TLS != nil || !c.Raw.Direct() {
		return
	}
	if raw, err := c.Raw.SyscallConn(); err == nil {
		c.raw, c.tryReadFunc = raw, c.tryRead
	}
}

// arm lets reads end after a time. Without a bound they do not end.
func (c *conn) arm(now time.Time, timeout time.Duration) {
	if c.deadlineMoved.Swap(false) {
		c.idle.Clear()
		_ = c.Conn.SetReadDeadline(time.Time{})
	}
	if timeout <= 0 {
		if c.idle.Clear() {
			_ = c.Conn.SetReadDeadline(time.Time{})
		}
		return
	}
	if set, at := c.idle.Arm(now, timeout); set {
		_ = c.Conn.SetReadDeadline(at)
	}
}

// armUntil lets reads end when timeout has passed since a time. Without a bound they do not
// end.
func (c *conn) armUntil(now, since time.Time, timeout time.Duration) {
	if timeout > 0 {
		timeout = max(timeout-now.Sub(since), 1)
	}
	c.arm(now, timeout)
}

// await waits for the first bytes of a request. It returns nil when the connection ends.
func (c *conn) await(first bool) *transaction {
	if t := c.held; t != nil {
		c.held = nil
		return t
	}
	if first && c.raw != nil {
		if t, err := c.readNow(); t != nil || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return t
		}
	}
	now := time.Now()
	since, timeout := now, c.server.config.Idle
	if first {
		since, timeout = c.began, c.server.config.ReadHeader
	}
	for ; ; now = time.Now() {
		c.armUntil(now, since, timeout)
		if c.server.closing.Load() { // Shutdown wakes only connections whose deadline is set.
			return nil
		}
		t, err := c.arrive()
		if err == nil {
			return t
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || timeout <= 0 || time.Since(since) >= timeout || c.server.closing.Load() {
			return nil
		}
		c.idle.Clear()
	}
}

// arrive reads the first bytes of a request into a new transaction.
func (c *conn) arrive() (*transaction, error) {
	if c.raw != nil {
		return c.waitAndRead()
	}
	var one [1]byte
	n, err := c.Conn.Read(one[:])
	if n == 0 {
		if err == nil {
			err = net.ErrClosed
		}
		return nil, err
	}
	t := c.server.take()
	t.buf[0], t.end = one[0], 1
	return t, nil
}

// more reads more of a header.
func (c *conn) more(t *transaction) error {
	n, err := c.Conn.Read(t.buf[t.end:])
	t.end += n
	if n > 0 {
		return nil
	}
	return err
}

// write writes to the connection.
func (c *conn) write(p []byte) (int, error) { return c.Conn.Write(p) }

// writeLast writes the end of an answer, behind which the connection closes.
func (c *conn) writeLast(p []byte) (int, error) {
	if to, ok := c.Raw.(LastWriter); ok && c.raw != nil {
		return to.WriteLast(p)
	}
	return c.write(p)
}

// begin notes that a request is in progress, for checkClients and Close.
func (c *conn) begin(t *transaction) {
	c.mu.Lock()
	c.transaction = t
	c.mu.Unlock()
	c.progress.Store(newRequest)
}

// ended notes that the request has ended.
func (c *conn) ended() {
	c.progress.Store(noRequest)
	c.mu.Lock()
	c.transaction = nil
	c.mu.Unlock()
}

// wake ends the wait for the next request.
func (c *conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transaction == nil && c.lent == nil {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // A time in the past.
	}
}

// abort ends the request and closes the connection.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transaction != nil {
		c.transaction.ctx.end()
	}
	if c.lent != nil {
		c.lent.clientLeft() // A wait behind the request does not see that the connection closes.
	}
	_ = c.Conn.Close()
}

// Socket is the socket of a connection.
type Socket interface {
	syscall.Conn
	// Direct reports whether bytes may be read from the descriptor itself. It is false when
	// a layer above has a buffer.
	Direct() bool
	// Received notes that bytes were read from the descriptor.
	Received(b []byte) error
	// Disconnected reports whether the client has closed its side, or the whole connection.
	Disconnected() bool
	// BeforeWrite notes that bytes will be written to the descriptor.
	BeforeWrite()
}

// LastWriter is a Socket that can send the last bytes and the end of the stream together.
type LastWriter interface {
	// WriteLast writes the last bytes, and closes the sending side behind them.
	WriteLast(p []byte) (int, error)
}
