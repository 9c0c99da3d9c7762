package server

import (
	"io"
	"syscall"
)

// canAttempt says that attempt works on this system.
const canAttempt = true

// attempts waits until the socket is readable, and reads into a turn. While it waits, it
// has no turn.
func (c *conn) attempts() (*turn, error) {
	err := c.raw.Read(c.attempted)
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

// attempt reads once. It returns false if there is nothing to read.
func (c *conn) attempt(fd uintptr) bool {
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
