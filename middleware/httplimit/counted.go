package httplimit

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/headgate/headgate/guard"
)

// counted is the body of a request whose bytes a rule counts.
type counted struct {
	io.ReadCloser

	read atomic.Int64
}

// counting returns a copy of the request whose body is counted, if a rule counts bytes.
func counting(t *guard.Ticket, r *http.Request) (*http.Request, *counted) {
	if !t.CountsBytes() || r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	in, again := &counted{ReadCloser: r.Body}, *r
	again.Body = in
	return &again, in
}

// Read implements io.Reader. Handlers compare the error, so it is not wrapped.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err //nolint:wrapcheck // See above.
}

// count returns the bytes that were read. It is 0 for a nil body.
func (c *counted) count() int64 {
	if c == nil {
		return 0
	}
	return c.read.Load()
}

// upgrade is what remains of a request whose connection was hijacked.
type upgrade struct {
	ticket         *guard.Ticket
	in             *counted
	received, sent atomic.Int64
	ends           int // how many bytes of endOfHead were written; all of them after the head
}

// endOfHead ends the head of the answer, which a handler writes to a hijacked connection.
const endOfHead = "\r\n\r\n"

// body returns how many bytes of p follow the head of the answer.
func (u *upgrade) body(p []byte) int {
	for i, c := range p {
		switch {
		case u.ends == len(endOfHead):
			return len(p) - i
		case c == endOfHead[u.ends]:
			u.ends++
		case c == endOfHead[0]:
			u.ends = 1
		default:
			u.ends = 0
		}
	}
	return 0
}

// closed ends the ticket of a hijacked connection.
func (u *upgrade) closed() {
	u.ticket.Done(guard.Outcome{
		Status: http.StatusSwitchingProtocols, Received: u.in.count() + u.received.Load(), Sent: u.sent.Load(),
	})
}

// count makes all bytes of the connection pass c, and returns its reader and writer.
func (c *hijacked) count(rw *bufio.ReadWriter) *bufio.ReadWriter {
	c.counts = true
	if n := rw.Reader.Buffered(); n > 0 {
		ahead, _ := rw.Reader.Peek(n)
		c.early = bytes.Clone(ahead)
	}
	return bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
}

// Read implements io.Reader.
func (c *hijacked) Read(p []byte) (n int, err error) {
	if len(c.early) > 0 {
		n = copy(p, c.early)
		c.early = c.early[n:]
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.counts {
		c.received.Add(int64(n))
	}
	return n, err
}

// Write implements io.Writer. One goroutine at a time writes the head of the answer.
func (c *hijacked) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.counts {
		c.sent.Add(int64(c.body(p[:max(0, n)])))
	}
	return n, err
}
