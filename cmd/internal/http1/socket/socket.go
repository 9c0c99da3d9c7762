//go:build unix

package socket

import (
	"io"
	"net"
	"os"
	"syscall"
)

// mostMoved bounds the bytes of one call.
const mostMoved = 64 << 10

// Quiet reports whether a socket is open and has no unread bytes.
func Quiet(fd uintptr) bool {
	var one [1]byte
	_, errno := peek(fd, one[:])
	return errno == syscall.EAGAIN
}

// Writer writes to a connection. One goroutine at a time uses it. The zero Writer has no
// connection.
type Writer struct {
	raw syscall.RawConn

	// The callback is made once, because making one allocates.
	tryWrite func(fd uintptr) bool
	rest     []byte
	err      error
	now      bool // try does not wait
	last     bool // nothing is written behind rest
}

// Use gives the Writer a connection, if that has a descriptor. Its writes have the deadlines
// of the connection.
func (w *Writer) Use(c net.Conn) {
	able, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := able.SyscallConn(); err == nil {
		w.raw, w.tryWrite = raw, w.try
	}
}

// Known reports whether the Writer has a connection.
func (w *Writer) Known() bool { return w.raw != nil }

// Last says that the next bytes are the last. The write that sends the last of them closes the
// sending side, so that one segment has both: the peer is woken once.
func (w *Writer) Last() { w.last = true }

// Write implements io.Writer. It waits while the socket takes nothing.
func (w *Writer) Write(p []byte) (int, error) { return w.write(p, false) }

// WriteNow writes what the socket takes at once. Therefore it needs no deadline.
func (w *Writer) WriteNow(p []byte) (int, error) { return w.write(p, true) }

func (w *Writer) write(p []byte, now bool) (int, error) {
	w.rest, w.err, w.now = p, nil, now
	err := w.raw.Write(w.tryWrite)
	if err == nil {
		err = w.err
	}
	n := len(p) - len(w.rest)
	w.rest = nil
	return n, err //nolint:wrapcheck // because the caller of a connection compares the error.
}

// try returns false if the socket takes nothing.
func (w *Writer) try(fd uintptr) (done bool) {
	for len(w.rest) > 0 {
		n, errno := w.send(fd)
		switch {
		case errno == syscall.EAGAIN:
			return w.now
		case errno != 0:
			w.err = os.NewSyscallError("write", errno)
			return true
		case n == 0:
			w.err = io.ErrUnexpectedEOF
			return true
		}
		w.rest = w.rest[n:]
	}
	if w.last {
		closeWrite(fd)
	}
	return true
}

func (w *Writer) send(fd uintptr) (int, syscall.Errno) {
	if w.last {
		return writeMore(fd, w.rest)
	}
	return Write(fd, w.rest)
}
