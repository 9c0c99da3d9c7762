package server

import (
	"io"
	"syscall"

	"github.com/headgate/headgate/cmd/internal/http1/socket"
)

// canTryRead says that tryRead works on this system.
const canTryRead = true

// waitAndRead waits until the socket is readable, and reads into a transaction. It has no
// transaction while it waits.
func (c *conn) waitAndRead() (*transaction, error) {
	err := c.raw.Read(c.tryReadFunc)
	t, failed := c.got, c.gotError
	c.got, c.gotError = nil, nil
	switch {
	case err != nil:
		failed = err
	case failed == nil && t != nil:
		failed = c.Raw.Received(t.unread())
	}
	if failed != nil && t != nil {
		c.server.release(t)
		t = nil
	}
	return t, failed
}

// readNow reads the bytes that have arrived with a new connection, if there are any. A connection
// whose first request has arrived needs no deadline.
func (c *conn) readNow() (*transaction, error) {
	c.now = true
	defer func() { c.now = false }()
	return c.waitAndRead()
}

// tryRead reads once. It returns false if there is nothing to read, unless the caller does not wait.
func (c *conn) tryRead(fd uintptr) bool {
	t := c.server.take()
	n, errno := socket.Read(fd, t.buf[:])
	switch {
	case errno == syscall.EAGAIN:
		c.server.release(t)
		return c.now
	case errno != 0:
		c.gotError = errno
	case n == 0:
		c.gotError = io.EOF
	}
	c.got, t.end = t, n
	return true
}
