//go:build unix && (!linux || race || msan || asan)

package socket

import (
	"errors"
	"syscall"
)

// Read reads once. It returns EAGAIN if there is nothing to read, and 0 bytes at the end of
// the stream.
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(p, func(p []byte) (int, error) { return syscall.Read(int(fd), p) })
}

// Write writes once, and perhaps not all of p. It returns EAGAIN if the socket takes nothing.
func Write(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(p, func(p []byte) (int, error) { return syscall.Write(int(fd), p) })
}

// writeMore is Write.
func writeMore(fd uintptr, p []byte) (int, syscall.Errno) { return Write(fd, p) }

// closeWrite closes the sending side. It fails only if the peer has closed the connection.
func closeWrite(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_WR) }

// peek reads into p without taking the bytes from the socket.
func peek(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(p, func(p []byte) (int, error) {
		n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return n, err
	})
}

func call(p []byte, do func([]byte) (int, error)) (int, syscall.Errno) {
	for {
		n, err := do(p[:min(len(p), mostMoved)])
		switch errno, failed := errors.AsType[syscall.Errno](err); {
		case !failed:
			return n, 0
		case errno != syscall.EINTR:
			return 0, errno
		}
	}
}
