//go:build unix

package client

import "syscall"

// quiet reports whether an idle connection is open and has no unread bytes.
func (c *conn) quiet() bool {
	if c.raw == nil {
		return true
	}
	c.isQuiet = false
	return c.raw.Control(c.peek) == nil && c.isQuiet
}

// look is the callback of quiet.
func (c *conn) look(fd uintptr) {
	for {
		_, _, err := syscall.Recvfrom(int(fd), c.peeked[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			c.isQuiet = err == syscall.EAGAIN
			return
		}
	}
}
