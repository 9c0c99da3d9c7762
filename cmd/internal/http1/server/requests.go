package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard/report"
)

// lingering is how long the rest of a long body is read over before the connection is closed.
// Closing earlier would send a TCP reset, which can destroy the answer on its way.
const lingering = 500 * time.Millisecond

// next serves one request. It returns false when this server is done with the connection.
func (c *conn) next(first bool) bool {
	t := c.await(first)
	if t == nil {
		return false
	}
	size, err := c.header(t, first)
	switch {
	case errors.Is(err, errNotStrict), errors.Is(err, io.EOF):
		return c.giveAwayAll(t, fallbackCause{why: report.PathSyntax, first: first})
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.giveAwayAll(t, fallbackCause{why: report.PathSyntax, first: first, expired: true})
	case errors.Is(err, errTooLong):
		return c.giveAwayAll(t, fallbackCause{why: report.PathSize, first: first})
	case err != nil:
		return false
	}
	head, why := c.parse(t, string(t.buf[:size]))
	if why != report.PathFast {
		return c.fallback(t, size, &head, fallbackCause{why: why, first: first})
	}
	t.start = size
	return c.handle(t, &head)
}

var (
	errNotStrict = errors.New("server: the header is not in strict form")
	errTooLong   = errors.New("server: the header does not fit in the buffer")
)

// header reads until the header is complete, and returns its length.
func (c *conn) header(t *transaction, first bool) (size int, err error) {
	if !first && !c.waitForRequest(t) {
		return 0, net.ErrClosed
	}
	c.skipBlankLines(t)
	c.since = time.Time{}
	if first {
		c.since = c.began
	}
	var prefix http1.Prefix
	for {
		if end := bytes.Index(t.unread(), []byte("\r\n\r\n")); end >= 0 {
			size = end + len("\r\n\r\n")
			if size > c.server.config.MaxHeader {
				return 0, errTooLong
			}
			return size, nil
		}
		switch {
		case !prefix.Strict(t.unread()):
			if prefix.Many {
				return 0, errTooLong
			}
			return 0, errNotStrict
		case t.end == len(t.buf):
			return 0, errTooLong
		}
		if c.since.IsZero() {
			c.since = time.Now()
		}
		if err := c.moreWithin(t, c.since, c.server.config.ReadHeader); err != nil {
			return 0, err
		}
	}
}

// waitForRequest reads the first bytes of a further request. net/http treats fewer of them
// as the end of the connection.
func (c *conn) waitForRequest(t *transaction) bool {
	const least = 4
	since := time.Now()
	for t.end-t.start < least {
		if c.moreWithin(t, since, c.server.config.Idle) != nil {
			return false
		}
	}
	return true
}

// moreWithin reads more of a header. The time for it began at since.
func (c *conn) moreWithin(t *transaction, since time.Time, timeout time.Duration) error {
	for {
		c.armUntil(time.Now(), since, timeout)
		err := c.more(t)
		if !errors.Is(err, os.ErrDeadlineExceeded) || timeout <= 0 || time.Since(since) >= timeout {
			return err
		}
		c.idle.Clear()
	}
}

// skipBlankLines skips line ends before a request that follows a POST, as net/http does: some
// clients send one after the body.
func (c *conn) skipBlankLines(t *transaction) {
	const most = 4
	for n := 0; c.posted && n < most && t.start < t.end && (t.buf[t.start] == '\r' || t.buf[t.start] == '\n'); n++ {
		t.start++
	}
	t.end = copy(t.buf[:], t.unread())
	t.start = 0
}

// parse reads the header into t.
func (c *conn) parse(t *transaction, text string) (http1.Head, report.Path) {
	head, why := t.fields.ParseRequest(text)
	if why == report.PathFast && http1.ParseTarget(head.Target, &t.url) != nil {
		why = report.PathTarget
	}
	if why == report.PathVersion && head.Method == "PRI" {
		why = report.PathHTTP2
	}
	return head, why
}

// handle calls the handler and ends its answer.
func (c *conn) handle(t *transaction, head *http1.Head) bool {
	c.State(http.StateActive)
	c.posted = head.Method == http.MethodPost
	t.prepare(c, head)
	c.begin(t)
	c.server.config.Handler(&t.writer, t.request, &t.fields)
	reuse := t.writer.finish()
	c.ended()
	t.ctx.end()
	again := c.endBody(t, reuse)
	t.writer.free()
	if !again && t.body.conn != nil && !t.body.ended.Load() {
		return false // A goroutine of the handler may still read the body, so that t is not used again.
	}
	t.reset()
	if !again {
		c.server.release(t)
		return false
	}
	if t.start < t.end {
		c.held = t
	} else {
		c.server.release(t)
	}
	c.State(http.StateIdle)
	return true
}

// endBody reads over the rest of a body. It returns false if the connection cannot be used
// again.
func (c *conn) endBody(t *transaction, reuse bool) bool {
	b := &t.body
	switch {
	case b.conn == nil || b.left == 0:
		return reuse
	case b.broken, t.writer.err != nil, t.request.Close: // Nothing follows the body, so that no byte of it is read over.
		return false
	case b.left <= mostDiscarded:
		return b.discard() && reuse
	}
	c.linger()
	return false
}

// linger gives the client time to read the answer to a request whose body is too long to be
// read over.
func (c *conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingering))
	_, _ = io.CopyN(io.Discard, c.Conn, mostDiscarded) // The client closes, or the time is over.
}
