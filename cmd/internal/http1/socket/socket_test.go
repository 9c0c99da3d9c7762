//go:build unix

package socket_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/socket"
)

// pair returns the two ends of a TCP connection.
func pair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialed.Close(), accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// on calls f with the descriptor of a connection, until f returns true.
func on(t *testing.T, c syscall.Conn, f func(fd uintptr) bool) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(f); err != nil {
		t.Fatal(err)
	}
}

// TestRead checks all that a read can find.
func TestRead(t *testing.T) {
	a, b := pair(t)
	buf := make([]byte, 8)
	on(t, b, func(fd uintptr) bool {
		if n, errno := socket.Read(fd, buf); n != 0 || errno != syscall.EAGAIN {
			t.Errorf("read %d bytes of an empty socket, error %v", n, errno)
		}
		if !socket.Quiet(fd) {
			t.Error("an empty socket is not quiet")
		}
		return true
	})
	_, _ = a.Write([]byte("hello"))
	on(t, b, func(fd uintptr) bool {
		if socket.Quiet(fd) { // The bytes may still be on their way.
			return false
		}
		if n, errno := socket.Read(fd, buf); string(buf[:n]) != "hello" || errno != 0 {
			t.Errorf("read %q, error %v", buf[:n], errno)
		}
		return true
	})
	_ = a.Close()
	on(t, b, func(fd uintptr) bool {
		n, errno := socket.Read(fd, buf)
		if errno == syscall.EAGAIN {
			return false
		}
		if n != 0 || errno != 0 || socket.Quiet(fd) {
			t.Errorf("at the end of the stream, read %d bytes, error %v", n, errno)
		}
		return true
	})
}

// TestWriter checks that all bytes arrive, also those for which the Writer has to wait.
func TestWriter(t *testing.T) {
	a, b := pair(t)
	var w socket.Writer
	if w.Known() {
		t.Error("the zero Writer has a connection")
	}
	w.Use(a)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	written := make(chan error, 1)
	go func() {
		n, err := w.Write(want)
		if err == nil && n != len(want) {
			err = io.ErrShortWrite
		}
		_ = a.CloseWrite()
		written <- err
	}()
	<-time.After(20 * time.Millisecond) // The Writer waits.
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes of %d, error %v", len(got), len(want), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestWriterErrors checks a deadline, a peer that has reset the connection, and a closed
// connection.
func TestWriterErrors(t *testing.T) {
	a, b := pair(t)
	var w socket.Writer
	w.Use(a)
	_ = a.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)) // A busy machine begins to write late.
	large := make([]byte, 16<<20)
	n, err := w.Write(large)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n <= 0 || n >= len(large) {
		t.Errorf("behind the deadline: %d bytes, error %v", n, err)
	}
	_ = a.SetWriteDeadline(time.Time{})
	_ = b.SetLinger(0)
	_ = b.Close()
	for err = nil; err == nil; {
		_, err = w.Write(large)
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
	_ = a.Close()
	if _, err := w.Write(large); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestWriterAllocatesNothing checks the cost of a write.
func TestWriterAllocatesNothing(t *testing.T) {
	a, b := pair(t)
	var w socket.Writer
	w.Use(a)
	message, buf := []byte("hello"), make([]byte, 64)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := w.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(b, buf[:len(message)]); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

// TestLast checks that the end of the stream follows the last bytes, also those for which the
// Writer has to wait.
func TestLast(t *testing.T) {
	for _, size := range []int{1, 1 << 10, 8 << 20} {
		a, b := pair(t)
		var w socket.Writer
		w.Use(a)
		if _, err := w.Write([]byte("first ")); err != nil {
			t.Fatal(err)
		}
		want := append([]byte("first "), bytes.Repeat([]byte("x"), size)...)
		written := make(chan error, 1)
		go func() {
			w.Last()
			_, err := w.Write(want[len("first "):])
			written <- err
		}()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes of %d, error %v", len(got), len(want), err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

// TestWriteNow checks that WriteNow does not wait, and that Write then sends the rest.
func TestWriteNow(t *testing.T) {
	a, b := pair(t)
	var w socket.Writer
	w.Use(a)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	n, err := w.WriteNow(want)
	if err != nil || n == 0 || n == len(want) {
		t.Fatalf("wrote %d bytes of %d, error %v", n, len(want), err)
	}
	written := make(chan error, 1)
	go func() {
		w.Last()
		_, err := w.Write(want[n:])
		written <- err
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes of %d, error %v", len(got), len(want), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
