package client

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// conn is a connection to the service.
type conn struct {
	net.Conn

	reused    bool // the connection was idle before
	idleSince time.Time

	raw raw

	ctx         context.Context //nolint:containedctx // because the exchange outlives Do.
	watcher     http1.Watcher   // ctx, if it is one
	stop        func() bool     // ends context.AfterFunc, or nil
	interrupted atomic.Bool

	mu       sync.Mutex // guards the fields below and the order of SetReadDeadline calls
	deadline http1.Deadline
	due      time.Time // when the current read times out; zero if never
	answered bool      // the header of the final answer is read, so reads do not time out
}

func newConn(raw net.Conn) *conn {
	c := &conn{Conn: raw}
	if c.raw.use(raw); !c.raw.known() {
		if _, tells := raw.(quieter); !tells {
			c.Conn = http1.NewAhead(raw)
		}
	}
	return c
}

// quieter is a connection without a descriptor that tells whether it is open and has no unread bytes.
type quieter interface{ Quiet() bool }

// quiet reports whether an idle connection is open and has no unread bytes.
func (c *conn) quiet() bool {
	if c.raw.known() {
		return c.raw.quiet()
	}
	able, ok := c.Conn.(quieter)
	return ok && able.Quiet()
}

// watch begins the time without a request.
func (c *conn) watch() {
	if ahead, watched := c.Conn.(*http1.Ahead); watched {
		ahead.Watch(c.close)
	}
}

// close closes the connection.
func (c *conn) close() { _ = c.Conn.Close() }

// Interrupt implements http1.Interrupter.
func (c *conn) Interrupt() {
	c.interrupted.Store(true)
	c.close()
}

// start begins an exchange. The connection is closed when ctx is done.
func (c *conn) start(ctx context.Context) {
	c.mu.Lock()
	c.due, c.answered = time.Time{}, false
	c.mu.Unlock()
	c.ctx = ctx
	if watcher, ok := ctx.(http1.Watcher); ok {
		c.watcher = watcher
		watcher.Watch(c)
		return
	}
	if ctx.Done() != nil {
		c.stop = context.AfterFunc(ctx, c.Interrupt)
	}
}

// cause returns the error of the context instead of the errors that it caused.
func (c *conn) cause(err error) error {
	if ended := c.ctx.Err(); ended != nil {
		return ended
	}
	return err
}

// unwatch ends watch. It returns whether the connection was not interrupted and never will
// be.
func (c *conn) unwatch() bool {
	stopped := true
	switch {
	case c.watcher != nil:
		c.watcher.Unwatch()
	case c.stop != nil:
		stopped = c.stop()
	}
	c.ctx, c.watcher, c.stop = nil, nil, nil
	return stopped && !c.interrupted.Load()
}

// bound gives the service timeout to send the header of the final answer, unless it is
// already read. 0 means no bound.
func (c *conn) bound(now time.Time, timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered || timeout <= 0 {
		return
	}
	set, at := c.deadline.Arm(now, timeout)
	c.due = at
	if set {
		_ = c.Conn.SetReadDeadline(at)
	}
}

// unbound ends bound, because the answer has started. A deadline may still be set; read
// handles it.
func (c *conn) unbound() {
	c.mu.Lock()
	c.due, c.answered = time.Time{}, true
	c.mu.Unlock()
}

// clearDeadline removes the deadline, for a caller that reads without read.
func (c *conn) clearDeadline() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.Clear() {
		_ = c.Conn.SetReadDeadline(time.Time{})
	}
}

// read reads from the connection. It returns errTimeout when the bound is over.
func (c *conn) read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if c.timedOut() {
			return 0, errTimeout
		}
	}
}

// ask writes a request, and reads the first bytes of the answer into in. With check, it
// returns errStale if the connection was closed or got bytes while it was idle.
func (c *conn) ask(head, in []byte, config *Config, check bool) (int, error) {
	c.bound(time.Now(), config.Timeout)
	if !c.raw.known() {
		if err := c.write(head, config.BodyIdle); err != nil {
			return 0, err
		}
		return c.read(in)
	}
	c.raw.begin(head, in, check && c.reused)
	defer c.raw.begin(nil, nil, false) // An idle connection has no buffer.
	for {
		n, err := c.raw.exchange()
		switch {
		case n > 0:
			return n, nil
		case err == nil: // The connection did not take the whole request.
			if err := c.write(c.raw.unsent(), config.BodyIdle); err != nil {
				return 0, err
			}
			c.bound(time.Now(), config.Timeout)
			return c.read(in)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		case c.timedOut():
			return 0, errTimeout
		}
	}
}

// timedOut is called when the deadline fired. If that was too early, timedOut sets the
// exact deadline and returns false.
func (c *conn) timedOut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.Fired(time.Now(), c.due) {
		return true
	}
	_ = c.Conn.SetReadDeadline(c.due)
	return false
}

// write writes all of p. A write that makes no progress for idle fails; 0 means no bound.
func (c *conn) write(p []byte, idle time.Duration) error {
	if idle > 0 {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(idle))
	}
	_, err := c.Conn.Write(p)
	return err
}

// errStale means that nothing was written, because the connection is not idle any more.
var errStale = errors.New("http1: the service closed an idle connection")

// errTimeout is a net.Error, as of net/http's Transport.
var errTimeout error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string        { return "http1: the service did not start its answer in time" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Temporary() bool      { return true }
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
