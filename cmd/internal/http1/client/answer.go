package client

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// Answer is the final answer to a request, and reads its body. An Answer may be used again
// after Close; the values in its Header are then no longer valid. One goroutine at a time
// may use an Answer.
type Answer struct {
	Status int
	// Header has the fields of the answer. The caller may change it.
	Header http1.List
	// Length is the length of the body. -1 means unknown until its end. Length is 0
	// without a body: for HEAD, 101, 204 and 304. Header keeps Content-Length in any case.
	Length int64
	// Trailer has the announced names with nil values, and is complete after Read
	// returned io.EOF. It is nil without a trailer.
	Trailer http.Header

	client *Client
	conn   *conn // nil when the exchange has ended
	upload *upload
	buffer *buffer

	// next and end are the bounds of the unread bytes in buffer.
	next, end int
	left      int64 // bytes of a plain body that are not read
	other     *other
	err       error // what Read returns from now on
	answered  bool  // a byte of the answer was read
	closing   bool  // the connection cannot be used again
}

// Buffered returns and consumes the bytes of the body that arrived with the header. It
// returns nil for an answer that is not plain. The bytes are valid until the next call.
func (a *Answer) Buffered() []byte {
	if a.other != nil || a.conn == nil {
		return nil
	}
	n := int(min(int64(a.end-a.next), a.left))
	b := a.buffer.bytes[a.next : a.next+n]
	a.next += n
	a.left -= int64(n)
	return b
}

// Read implements io.Reader. It returns io.ErrUnexpectedEOF if the body ends early.
func (a *Answer) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	if a.conn == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	if a.other != nil {
		return a.readOther(p)
	}
	if a.left == 0 {
		a.err = io.EOF
		return 0, io.EOF
	}
	if b := a.Buffered(); len(b) > 0 {
		return a.keep(copy(p, b), len(b)), nil
	}
	n, err := a.conn.read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	return n, a.broken(err)
}

// keep takes back the bytes of Buffered after the first n of all.
func (a *Answer) keep(n, all int) int {
	a.next -= all - n
	a.left += int64(all - n)
	return n
}

// broken notes an error of the connection, and returns the error for the caller.
func (a *Answer) broken(err error) error {
	if err == nil {
		return nil
	}
	a.closing = true
	if err == io.EOF { //nolint:errorlint // because a connection returns the bare io.EOF.
		err = io.ErrUnexpectedEOF
	}
	a.err = a.conn.cause(err)
	return a.err
}

// Source returns the connection, if the next left bytes on it are the rest of the body and
// can be moved by the kernel. The caller reports the bytes that it read with Took.
func (a *Answer) Source() (src net.Conn, left int64, ok bool) {
	if a.conn == nil || a.other != nil || a.err != nil || a.next < a.end || a.left == 0 || !a.conn.raw.known() {
		return nil, 0, false
	}
	a.conn.clearDeadline()
	return a.conn.Conn, a.left, true
}

// Consume notes that the caller read n bytes of the body from Source.
func (a *Answer) Consume(n int64) { a.left -= n }

// Close ends the exchange. The connection is kept if it can be used again, else it is
// closed. Close does not wait for a Read of the request's body.
func (a *Answer) Close() {
	c := a.conn
	if c == nil {
		return
	}
	keep := a.complete() && a.upload.complete()
	keep = c.unwatch() && keep
	a.upload.end()
	a.release()
	if !keep {
		c.close()
		return
	}
	a.client.idle.put(c, time.Now())
}

// complete reports whether the answer was read to its end, and nothing follows.
func (a *Answer) complete() bool {
	switch {
	case a.closing:
		return false
	case a.other != nil:
		return a.other.complete()
	}
	return a.left == 0 && a.next == a.end
}

// release returns the memory.
func (a *Answer) release() {
	a.buffer.release()
	if a.other != nil {
		a.other.release()
		a.other = nil
	}
	a.conn, a.upload, a.buffer = nil, nil, nil
}
