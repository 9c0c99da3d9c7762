package server

import (
	"io"
	"syscall"
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
	case failed == nil:
		failed = c.Raw.Received(t.unread())
	}
	if failed != nil && t != nil {
		c.server.release(t)
		t = nil
	}
	return t, failed
}

// tryRead reads once. It returns false if there is nothing to read.
func (c *conn) tryRead(fd uintptr) bool {
	t := c.server.take()
	for {
		n, err := syscall.Read(int(fd), t.buf[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			c.server.release(t)
			return false
		case err == nil && n == 0:
			err = io.EOF
		}
		c.got, t.end, c.gotError = t, max(n, 0), nil
		if err != nil {
			c.gotError = err
		}
		return true
	}
}
