//go:build !race && !msan && !asan

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read reads once. It returns EAGAIN if there is nothing to read, and 0 bytes at the end of
// the stream.
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

// Write writes once, and perhaps not all of p. It returns EAGAIN if the socket takes nothing.
func Write(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// writeMore writes as Write does. The kernel may hold the bytes back until the next write or
// closeWrite.
func writeMore(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL|unix.MSG_MORE)
}

// closeWrite closes the sending side. It fails only if the peer has closed the connection.
func closeWrite(fd uintptr) {
	unix.RawSyscall(unix.SYS_SHUTDOWN, fd, unix.SHUT_WR, 0) //nolint:errcheck // because of this.
}

// peek reads into p without taking the bytes from the socket.
func peek(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT|unix.MSG_PEEK)
}

func call(trap, fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	p = p[:min(len(p), mostMoved)]
	for {
		//nolint:gosec // because p is kept alive by the expression itself, and the kernel keeps no pointer.
		n, _, errno := unix.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		if errno == 0 {
			return int(n), 0
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}
