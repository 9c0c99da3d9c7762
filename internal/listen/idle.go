package listen

import (
	"errors"
	"net"
	"os"
	"time"
)

const (
	// arrival is how long the first bytes of a connection, or those of its next request,
	// may take before the connection counts as idle. It is longer than a handshake takes
	// from far away, and than a busy process takes to read what has come.
	arrival = 500 * time.Millisecond
	// recheck is how often a newcomer at the bound looks for a connection that is idle.
	recheck = 20 * time.Millisecond
	// writePiece is how much is written within one WriteTimeout.
	writePiece = 64 << 10
)

// The values of counted.since besides the time of the last request.
const (
	busy   int64 = 0  // A request is in flight.
	chosen int64 = -1 // The connection is being closed in favor of a newcomer.
)

// makeRoom closes the connection that has been idle longest, and tells whether there
// was one. The server says which are idle: Idle and Busy.
func (l *Listener) makeRoom(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		c, since, ok := l.idle.Next(now.UnixNano(), func(add func(*counted, int64)) {
			for c := range l.conns {
				if since := c.since.Load(); since > 0 {
					add(c, since)
				}
			}
		})
		switch {
		case !ok:
			return false
		case c.arriving.Load() && now.UnixNano()-since < int64(arrival):
			continue // The next scan has it again.
		case !c.unread.Load() && pending(c.Conn): // A busy process may take long to read it.
			if c.since.CompareAndSwap(since, now.UnixNano()) {
				c.arriving.Store(true)
			}
		case c.since.CompareAndSwap(since, chosen):
			go c.giveWay() // Close takes the lock, and TCP may take time.
			l.closedIdle.Add(1)
			return true
		}
	}
}

// Idle says that no request is in flight: the connection may be closed when the bound
// is reached. A connection is idle from its beginning on.
func (c *counted) Idle() {
	if c.since.CompareAndSwap(busy, time.Now().UnixNano()) {
		c.arriving.Store(false)
	}
}

// Busy says that a request has begun: the connection stays open, unless it has been
// chosen already.
func (c *counted) Busy() {
	if since := c.since.Load(); since > 0 {
		c.since.CompareAndSwap(since, busy) // It fails if the connection has just been chosen.
	}
}

// Read implements net.Conn. The first bytes after an idle time may be a request, which
// is given some time to arrive.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		if since := c.since.Load(); since > 0 && !c.arriving.Load() {
			c.since.CompareAndSwap(since, time.Now().UnixNano()) // First, or it might be chosen as old.
			c.arriving.Store(true)
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *counted) Write(b []byte) (int, error) {
	if c.from.writing <= 0 {
		return c.Conn.Write(b)
	}
	total := 0
	for {
		n, err := c.writePiece(b[:min(len(b), writePiece)])
		total += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return total, err
		}
	}
}

// writePiece writes with a deadline. Until the peer takes the piece, a newcomer may take
// the place of a busy connection, as if it were idle.
func (c *counted) writePiece(b []byte) (int, error) {
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(c.from.writing))
	c.arriving.Store(true)
	c.unread.Store(true)
	waits := c.since.CompareAndSwap(busy, now.UnixNano())
	n, err := c.Conn.Write(b)
	c.unread.Store(false)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Abort()
	}
	if waits {
		c.since.CompareAndSwap(now.UnixNano(), busy) // It fails if the connection has been chosen.
	}
	return n, err
}

// giveWay closes a connection that has been chosen. A peer that does not read will not
// read what is left either.
func (c *counted) giveWay() {
	if c.unread.Load() {
		c.Abort()
		return
	}
	_ = c.Close()
}

// Abort closes the connection and drops what the client has not read: the kernel would
// keep it for minutes.
func (c *counted) Abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
