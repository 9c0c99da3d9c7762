package resp

import (
	"net"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/socket"
)

// received is a connection of package listen, which is told of bytes that were read from its descriptor.
type received interface{ Received() }

// open finds the descriptor of a connection without TLS.
func (c *conn) open() {
	conn, ok := c.net.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	c.raw = rawSocket{conn: raw, try: c.tryRead, put: c.tryWrite}
	if counter, ok := c.net.(received); ok {
		c.raw.received = counter.Received
	}
}

// fillRaw reads what has arrived. A connection that waits has no buffer.
func (c *conn) fillRaw() error {
	s := &c.raw
	s.n, s.err = 0, nil
	err := s.conn.Read(s.try)
	if err == nil {
		err = s.err
	}
	switch {
	case err != nil:
		return err
	case s.n <= 0:
		return net.ErrClosed
	}
	c.end += s.n
	if s.received != nil {
		s.received()
	}
	return nil
}

// tryRead reads once. It returns false if there is nothing to read.
func (c *conn) tryRead(fd uintptr) bool {
	empty := c.in == nil
	c.take()
	n, errno := socket.Read(fd, c.in[c.end:])
	switch {
	case errno == syscall.EAGAIN:
		if empty {
			c.drop()
		}
		return false
	case errno != 0:
		c.raw.err = errno
	}
	c.raw.n = n
	return true
}

// write writes answers. Without space in the socket, the deadline of the connection applies.
func (c *conn) write(b []byte) error {
	s := &c.raw
	if s.conn != nil {
		s.unsent = b
		err := s.conn.Write(s.put)
		b, s.unsent = s.unsent, nil
		if err != nil || len(b) == 0 {
			return err
		}
		defer func() { _ = c.net.SetWriteDeadline(time.Time{}) }() // A past deadline would fail the next one.
	}
	_, err := c.net.Write(b)
	return err
}

// tryWrite writes once.
func (c *conn) tryWrite(fd uintptr) bool {
	s := &c.raw
	if n, errno := socket.Write(fd, s.unsent); errno == 0 {
		s.unsent = s.unsent[n:]
	}
	return true // The usual way of writing finds the error again.
}
