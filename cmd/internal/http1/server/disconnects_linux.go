package server

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// CanTell says that Disconnected works on this system.
const CanTell = true

// Disconnected reports whether the peer of a socket has closed its side, or the whole connection.
func Disconnected(socket syscall.RawConn) (gone bool) {
	_ = socket.Control(func(fd uintptr) { // An error means that the connection is closed already.
		poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(poll[:], 0)
		gone = err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone
}
