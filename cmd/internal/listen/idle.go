package listen

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// arrival is how long the first bytes of a connection or of its next request may take
	// before the connection counts as idle. A TLS handshake with a distant client is
	// shorter, and a busy process reads sooner.
	arrival = 500 * time.Millisecond
	// recheck is how often a new connection at the bound looks for an idle connection.
	recheck = 20 * time.Millisecond
	// writePiece is the number of bytes written within one WriteTimeout.
	writePiece = 64 << 10
)

// The values of counted.since that are not times.
const (
	busy   int64 = 0  // A request is in flight.
	chosen int64 = -1 // The connection is being closed for a new connection.
)

// makeRoom closes the connection that has been idle longest. It returns false if none is
// idle. The server marks connections with Idle and Busy.
func (l *Listener) makeRoom(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.clock.At(now)
	for {
		c, since, ok := l.idle.Next(at, func(add func(*counted, int64)) {
			for c := range l.conns {
				if since := c.since.Load(); since > 0 {
					add(c, since)
				}
			}
		})
		switch {
		case !ok:
			return false
		case c.arriving.Load() && at-since < int64(arrival):
			continue // The next scan finds the connection again.
		case !c.unread.Load() && pending(c.Conn): // A busy process may be slow to read the bytes.
			if c.since.CompareAndSwap(since, at) {
				c.arriving.Store(true)
			}
		case c.since.CompareAndSwap(since, chosen):
			go c.giveWay() // Close locks mu, and closing TCP may take time.
			l.closedIdle.Add(1)
			return true
		}
	}
}

// Idle says that no request is in flight, so the connection may be closed at the bound.
// A new connection is idle.
func (c *counted) Idle() {
	if c.since.CompareAndSwap(busy, c.from.clock.At(time.Now())) {
		c.arriving.Store(false)
	}
}

// Await says that the request in flight waits for bytes of its body since a time. Until the next call
// of Busy, the connection may be closed at the bound. Bytes that arrive do not make it younger; a
// caller that wants them to gives the time of each wait. The connection has time for the first
// bytes, as a new connection has.
func (c *counted) Await(since time.Time) {
	c.arriving.Store(true) // Before the time, because the connection could be chosen in between.
	c.since.CompareAndSwap(busy, c.from.clock.At(since))
}

// Busy says that a request has started. The connection then stays open, unless it was
// already chosen.
func (c *counted) Busy() {
	for since := c.since.Load(); since > 0; since = c.since.Load() {
		if c.since.CompareAndSwap(since, busy) {
			return
		}
		// Bytes have just renewed the time, or the connection was chosen.
	}
}

// Read implements net.Conn. Bytes after an idle time may start a request, so the connection
// gets time to send the rest.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.Received()
	}
	return n, err
}

// Received says that bytes were read from the descriptor of SyscallConn.
func (c *counted) Received() {
	if since := c.since.Load(); since > 0 && !c.arriving.Load() {
		// The time changes first. With the old time the connection could be chosen.
		c.since.CompareAndSwap(since, c.from.clock.At(time.Now()))
		c.arriving.Store(true)
	}
}

// SyscallConn implements syscall.Conn. A caller that reads from the descriptor calls Received.
func (c *counted) SyscallConn() (syscall.RawConn, error) {
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return nil, errors.ErrUnsupported
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

// writePiece writes with a deadline. Until the peer reads the piece, the connection counts
// as idle, and a new connection may replace it.
func (c *counted) writePiece(b []byte) (int, error) {
	now := time.Now()
	c.renewDeadline(now)
	c.arriving.Store(true)
	c.unread.Store(true)
	since := c.from.clock.At(now)
	waits := c.since.CompareAndSwap(busy, since)
	n, err := c.Conn.Write(b)
	c.unread.Store(false)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Abort()
	}
	if waits {
		c.since.CompareAndSwap(since, busy) // The swap fails if the connection was chosen.
	}
	return n, err
}

// renewDeadline gives a write at least 7/8 of WriteTimeout. A deadline for each answer would cost more than counting its request.
func (c *counted) renewDeadline(now time.Time) {
	const renewal = 8
	whole, at := c.from.writing, now.Sub(c.from.opened)
	if time.Duration(c.writeUntil.Load())-at > whole-whole/renewal {
		return
	}
	_ = c.Conn.SetWriteDeadline(now.Add(whole))
	c.writeUntil.Store(int64(at + whole))
}

// SetWriteDeadline implements net.Conn. Each write has a deadline of WriteTimeout, so removing the deadline, as net/http does after
// each answer, changes nothing.
func (c *counted) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && c.from.writing > 0 {
		return nil
	}
	c.writeUntil.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *counted) SetDeadline(t time.Time) error {
	c.writeUntil.Store(0)
	return c.Conn.SetDeadline(t)
}

// giveWay closes a chosen connection. If the peer does not read, unsent data is discarded.
func (c *counted) giveWay() {
	if c.unread.Load() {
		c.Abort()
		return
	}
	_ = c.Close()
}

// Abort closes the connection and discards unsent data, which the kernel would keep for
// minutes.
func (c *counted) Abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
