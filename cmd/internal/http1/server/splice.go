package server

import (
	"net"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// CanSplice reports whether Splice can send n bytes of the body: the connection is a socket
// without TLS, and the handler has declared the length.
func (w *writer) CanSplice(n int64) bool {
	return w.conn.raw != nil && !w.toHead && w.length != unknown && allowsBody(w.status) && w.written+n <= w.length
}

// Splice sends the next n bytes of src as the body. The bytes stay in the kernel.
func (w *writer) Splice(src net.Conn, n int64, p http1.Progress) (sent int64, err error) {
	if err := w.FlushError(); err != nil {
		return 0, &http1.WriteError{Err: err}
	}
	arm := p.BeforeWrite
	p.BeforeWrite = func() {
		arm()
		w.conn.Raw.BeforeWrite()
	}
	sent, err = http1.Splice(w.conn.Conn, src, n, p)
	w.written += sent
	if err != nil {
		w.mayReuse = false
	}
	return sent, err //nolint:wrapcheck // because the caller looks for a WriteError.
}
