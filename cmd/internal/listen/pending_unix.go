//go:build unix

package listen

import (
	"net"
	"syscall"
)

// pending reports whether unread bytes have arrived.
func pending(c net.Conn) bool {
	inner, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := inner.SyscallConn()
	if err != nil {
		return false
	}
	var one [1]byte
	waiting := 0
	err = raw.Control(func(fd uintptr) {
		waiting, _, _ = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && waiting > 0
}
