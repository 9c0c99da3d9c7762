//go:build !linux

package http1

import "net"

// Splice moves the next n bytes from src to dst, and returns how many bytes it wrote to dst.
// After an error neither connection can be used again. io.ErrUnexpectedEOF means that src
// ended early.
func Splice(dst, src net.Conn, n int64, p Progress) (moved int64, err error) {
	return copyBytes(dst, src, n, p)
}
