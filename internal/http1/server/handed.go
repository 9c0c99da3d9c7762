package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/http1"
	"github.com/headgate/headgate/report"
)

// Handed is a connection that Fallback serves. Its first bytes are those that this server
// has read.
type Handed struct {
	net.Conn

	unread  []byte // bytes that this server has read
	first   bool
	expired bool // reads behind unread time out

	// The fields below are those of a lent connection.
	lent     bool
	left     int64 // bytes of the request that are not read yet
	returned chan struct{}
	mu       sync.Mutex
	changed  *sync.Cond
	deadline time.Time
	timer    *time.Timer
	finished bool // the answer is complete
	gone     bool // the client has left
	closed   bool
}

// handing says how a connection is given to Fallback.
type handing struct {
	why     report.Path
	first   bool // the request is the first of the connection
	expired bool // the time for its header is over
}

// First reports whether the first request of Handed is the first of its connection.
func (h *Handed) First() bool { return h.first }

// Lent reports whether the connection is lent for one request.
func (h *Handed) Lent() bool { return h.lent }

// giveAwayAll gives the connection to Fallback for good, with all bytes that were read.
func (c *conn) giveAwayAll(t *turn, how handing) bool {
	h := &Handed{Conn: c.Conn, unread: append([]byte(nil), t.unread()...), first: how.first, expired: how.expired}
	t.start = t.end
	t.reset()
	c.server.release(t)
	c.giveAway(h, how.why)
	return false
}

// giveAway gives the connection to Fallback for good.
func (c *conn) giveAway(h *Handed, why report.Path) {
	c.away = true
	c.idle.Clear()
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.server.config.Fallback(c.Client, h, why)
}

// fallback gives a request to Fallback. If the end of the request is known, the connection
// comes back.
func (c *conn) fallback(t *turn, size int, head *http1.Head, how handing) bool {
	if !head.End || c.server.closing.Load() {
		return c.giveAwayAll(t, how)
	}
	total := int64(size) + head.Length
	inBuffer := min(total, int64(t.end))
	h := &Handed{
		Conn: c.Conn, lent: true, first: how.first, unread: t.buf[:inBuffer], left: total - inBuffer, returned: make(chan struct{}),
	}
	h.changed = sync.NewCond(&h.mu)
	t.start = int(inBuffer)
	c.posted = head.Method == http.MethodPost
	c.setLent(h)
	c.idle.Clear()
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.progress.Store(newRequest)
	c.server.config.Fallback(c.Client, h, how.why)
	<-h.returned
	c.progress.Store(noRequest)
	c.setLent(nil)
	if !h.reusable() {
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

func (c *conn) setLent(h *Handed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent = h
}

// reusable reports whether the connection may serve another request.
func (h *Handed) reusable() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.finished && !h.gone && h.left == 0 && len(h.unread) == 0
}

// Finish says that the answer is complete and the connection may be used again. Reads then
// return io.EOF, so that the server of Fallback closes the connection.
func (h *Handed) Finish() { h.change(func() { h.finished = true }) }

// clientLeft makes reads return io.EOF.
func (h *Handed) clientLeft() { h.change(func() { h.gone = true }) }

func (h *Handed) change(what func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what()
	h.changed.Broadcast()
}

// Read implements net.Conn. Behind the request of a lent connection, it waits until the
// answer is complete or the client leaves.
func (h *Handed) Read(p []byte) (int, error) {
	if len(h.unread) > 0 {
		n := copy(p, h.unread)
		if h.unread = h.unread[n:]; len(h.unread) == 0 {
			h.unread = nil
		}
		return n, nil
	}
	switch {
	case h.expired:
		return 0, os.ErrDeadlineExceeded
	case !h.lent:
		return h.Conn.Read(p)
	}
	if h.left == 0 {
		return 0, h.wait()
	}
	n, err := h.Conn.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

// wait waits at the end of the request.
func (h *Handed) wait() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.closed:
			return net.ErrClosed
		case h.finished || h.gone:
			return io.EOF
		case !h.deadline.IsZero() && !time.Now().Before(h.deadline):
			return os.ErrDeadlineExceeded
		}
		h.changed.Wait()
	}
}

// SetReadDeadline implements net.Conn.
func (h *Handed) SetReadDeadline(t time.Time) error {
	if h.lent {
		h.expire(t)
	}
	return h.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (h *Handed) SetDeadline(t time.Time) error {
	if h.lent {
		h.expire(t)
	}
	return h.Conn.SetDeadline(t)
}

// expire lets a pending wait end at t.
func (h *Handed) expire(t time.Time) {
	h.change(func() {
		if h.timer != nil {
			h.timer.Stop()
			h.timer = nil
		}
		if h.deadline = t; !t.IsZero() && time.Until(t) > 0 {
			h.timer = time.AfterFunc(time.Until(t), h.changed.Broadcast)
		}
	})
}

// Close implements net.Conn. Close of a lent connection returns it.
func (h *Handed) Close() error {
	if !h.lent {
		return h.Conn.Close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	h.closed = true
	if h.timer != nil {
		h.timer.Stop()
	}
	h.changed.Broadcast()
	close(h.returned)
	return nil
}

// CloseWrite closes the sending side of the connection.
func (h *Handed) CloseWrite() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
