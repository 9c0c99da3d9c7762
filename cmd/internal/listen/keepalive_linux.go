package listen

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// enableKeepAlive enables keep-alives on a listening socket. Linux copies the options to accepted
// connections, which saves four system calls for each connection. Some kernels refuse them for
// MPTCP: then enableKeepAlive returns false.
func enableKeepAlive(socket syscall.RawConn) (done bool) {
	err := socket.Control(func(fd uintptr) {
		set := func(level, option, value int) error { return unix.SetsockoptInt(int(fd), level, option, value) }
		done = errors.Join(
			set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
			set(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAliveIdle/time.Second)),
			set(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepAliveEvery/time.Second)),
			set(unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveProbes),
		) == nil
	})
	return err == nil && done
}
