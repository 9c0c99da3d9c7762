package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard/report"
)

// FallbackConn is a connection that Fallback serves. Its reads first return the bytes that this
// server has already read.
type FallbackConn struct {
	net.Conn

	unread  []byte // bytes that this server has read
	first   bool
	expired bool      // reads behind unread time out
	until   time.Time // when the time for the first header ends; zero without a bound, and afterwards

	// The fields below are those of a lent connection.
	lent     bool
	left     int64 // bytes of the request that are not read yet
	returned chan struct{}
	mu       sync.Mutex
	changed  *sync.Cond
	deadline time.Time
	timer    *time.Timer
	waiting  bool // the request was read
	finished bool // the answer is complete
	gone     bool // the client has disconnected
	closed   bool
}

// fallbackCause says why, and in which state, a connection is given to Fallback.
type fallbackCause struct {
	why     report.Path
	first   bool // the request is the first of the connection
	expired bool // the time for its header is over
}

// Begins reads the start of the connection. It returns true if the client sends text, which later reads do not return. Otherwise later
// reads return all bytes.
func (f *FallbackConn) Begins(text string) bool {
	if !f.until.IsZero() {
		_ = f.Conn.SetReadDeadline(f.until)
	}
	for !f.expired && len(f.unread) < len(text) && strings.HasPrefix(text, string(f.unread)) {
		more := make([]byte, len(text)-len(f.unread))
		n, err := f.Conn.Read(more)
		if f.unread = append(f.unread, more[:n]...); err != nil {
			f.expired = errors.Is(err, os.ErrDeadlineExceeded)
			break
		}
	}
	_ = f.Conn.SetReadDeadline(time.Time{})
	rest, begins := strings.CutPrefix(string(f.unread), text)
	if begins {
		f.unread, f.until = []byte(rest), time.Time{}
	}
	return begins
}

// First reports whether the first request of f is the first of the client's connection.
func (f *FallbackConn) First() bool { return f.first }

// Lent reports whether the connection is lent for one request.
func (f *FallbackConn) Lent() bool { return f.lent }

// giveAwayAll gives the connection to Fallback permanently, with all bytes that were read.
func (c *conn) giveAwayAll(t *transaction, cause fallbackCause) bool {
	f := &FallbackConn{Conn: c.Conn, unread: append([]byte(nil), t.unread()...), first: cause.first, expired: cause.expired}
	t.start = t.end
	t.reset()
	c.server.release(t)
	c.giveAway(f, cause.why)
	return false
}

// giveAway gives the connection to Fallback permanently.
func (c *conn) giveAway(f *FallbackConn, why report.Path) {
	c.givenAway = true
	if bound := c.server.config.ReadHeader; bound > 0 && !c.since.IsZero() {
		f.until = c.since.Add(bound)
	}
	c.idle.Clear()
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.server.config.Fallback(c.Client, f, why)
}

// fallback gives a request to Fallback. If the end of the request is known, the connection
// comes back.
func (c *conn) fallback(t *transaction, size int, head *http1.Head, cause fallbackCause) bool {
	if !head.End || c.server.closing.Load() {
		return c.giveAwayAll(t, cause)
	}
	total := int64(size) + head.Length
	inBuffer := min(total, int64(t.end))
	f := &FallbackConn{
		Conn: c.Conn, lent: true, first: cause.first, unread: t.buf[:inBuffer], left: total - inBuffer, returned: make(chan struct{}),
	}
	f.changed = sync.NewCond(&f.mu)
	t.start = int(inBuffer)
	c.posted = head.Method == http.MethodPost
	c.setLent(f)
	c.idle.Clear()
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.progress.Store(newRequest)
	c.server.config.Fallback(c.Client, f, cause.why)
	<-f.returned
	c.progress.Store(noRequest)
	c.setLent(nil)
	if !f.reusable() {
		return false
	}
	_ = c.Conn.SetDeadline(time.Time{})
	t.reset()
	if t.start < t.end {
		c.held = t
	} else {
		c.server.release(t)
	}
	return true
}

func (c *conn) setLent(f *FallbackConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent = f
}

// reusable reports whether the connection may serve another request.
func (f *FallbackConn) reusable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finished && !f.gone && f.left == 0 && len(f.unread) == 0
}

// Finish says that the answer is complete and the connection may be used again. Reads then
// return io.EOF, so that the server of Fallback closes the connection.
func (f *FallbackConn) Finish() { f.change(func() { f.finished = true }) }

// clientLeft makes reads return io.EOF.
func (f *FallbackConn) clientLeft() { f.change(func() { f.gone = true }) }

func (f *FallbackConn) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	f.changed.Broadcast()
}

// Read implements net.Conn. Behind the request of a lent connection, it waits until the
// answer is complete or the client disconnects.
func (f *FallbackConn) Read(p []byte) (int, error) {
	if len(f.unread) > 0 {
		n := copy(p, f.unread)
		if f.unread = f.unread[n:]; len(f.unread) == 0 {
			f.unread = nil
		}
		return n, nil
	}
	switch {
	case f.expired:
		return 0, os.ErrDeadlineExceeded
	case !f.lent:
		return f.Conn.Read(p)
	}
	if f.left == 0 {
		return 0, f.wait()
	}
	n, err := f.Conn.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}

// waits reports whether the server of Fallback has read the request and waits.
func (f *FallbackConn) waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

// wait waits at the end of the request.
func (f *FallbackConn) wait() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = true
	for {
		switch {
		case f.closed:
			return net.ErrClosed
		case f.finished || f.gone:
			return io.EOF
		case !f.deadline.IsZero() && !time.Now().Before(f.deadline):
			return os.ErrDeadlineExceeded
		}
		f.changed.Wait()
	}
}

// SetReadDeadline implements net.Conn. The first deadline of the server of Fallback is that of
// the header. It ends when the time for the header ends, a part of which may be over.
func (f *FallbackConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && !f.until.IsZero() {
		if f.until.Before(t) {
			t = f.until
		}
		f.until = time.Time{} // No other goroutine uses the connection yet.
	}
	if f.lent {
		f.expire(t)
	}
	return f.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (f *FallbackConn) SetDeadline(t time.Time) error {
	if f.lent {
		f.expire(t)
	}
	return f.Conn.SetDeadline(t)
}

// expire lets a pending wait end at t.
func (f *FallbackConn) expire(t time.Time) {
	f.change(func() {
		if f.timer != nil {
			f.timer.Stop()
			f.timer = nil
		}
		if f.deadline = t; !t.IsZero() && time.Until(t) > 0 {
			f.timer = time.AfterFunc(time.Until(t), f.changed.Broadcast)
		}
	})
}

// Close implements net.Conn. Close of a lent connection returns it.
func (f *FallbackConn) Close() error {
	if !f.lent {
		return f.Conn.Close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return net.ErrClosed
	}
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.changed.Broadcast()
	close(f.returned)
	return nil
}

// CloseWrite closes the sending side of the connection.
func (f *FallbackConn) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
