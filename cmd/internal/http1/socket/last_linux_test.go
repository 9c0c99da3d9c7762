//go:build !race && !msan && !asan

package socket_test

import (
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1/socket"
)

// TestLastIsOneSegment checks that a peer which has read the last bytes finds the end of the stream at
// once.
func TestLastIsOneSegment(t *testing.T) {
	for range 100 {
		a, b := pair(t)
		var w socket.Writer
		w.Use(a)
		w.Last()
		go func() { _, _ = w.Write([]byte("hello")) }()
		buf := make([]byte, 8)
		on(t, b, func(fd uintptr) bool {
			n, errno := socket.Read(fd, buf)
			if errno == syscall.EAGAIN {
				return false
			}
			if string(buf[:n]) != "hello" || errno != 0 {
				t.Errorf("read %q, error %v", buf[:n], errno)
			}
			if n, errno := socket.Read(fd, buf); n != 0 || errno != 0 {
				t.Errorf("behind the last bytes: %d bytes, error %v, want the end of the stream", n, errno)
			}
			return true
		})
	}
}
