package http2

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// body is the body of a request. It is not used again, because a transport may close it after the handler has returned.
type body struct {
	conn *conn
	wake sync.Cond

	// The lock of the connection guards the fields below.
	stream   *stream // nil after the end of the stream
	data     []byte
	start    int // data[start:] is not read yet
	window   inflow
	declared int64 // Content-Length, or -1
	received int64
	err      error // behind data
	closed   bool  // by the handler
	expects  bool  // the client waits for 100
	deadline time.Time
	timer    *time.Timer
	trailer  http.Header // of the request: the declared names
	arrived  http.Header // the trailers that have arrived
}

func newBody(st *stream, length int64, trailer http.Header, expects bool) *body {
	b := &body{conn: st.conn, stream: st, declared: length, trailer: trailer, expects: expects}
	b.window.left = st.conn.server.config.ReceiveStream
	b.wake.L = &st.conn.mu
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	c := b.conn
	c.mu.Lock()
	defer c.unlock()
	b.inviteClient()
	for {
		switch {
		case b.closed:
			return 0, errBodyClosed
		case b.start < len(b.data):
			return b.read(p), nil
		case b.err != nil:
			if errors.Is(b.err, io.EOF) {
				b.copyTrailers()
			}
			return 0, b.err
		case len(p) == 0:
			return 0, nil
		}
		if err := b.wait(); err != nil {
			return 0, err
		}
	}
}

// inviteClient sends 100 to a client that waits for it before it sends its body.
func (b *body) inviteClient() {
	st := b.stream
	if !b.expects || st == nil {
		return
	}
	b.expects = false
	if !st.closed && !st.writer.sent {
		b.conn.queueHeader(st.id, appendStatus(nil, http.StatusContinue), false)
		b.conn.kick()
	}
}

// read copies bytes that have arrived, and lets the client send as many.
func (b *body) read(p []byte) int {
	n := copy(p, b.data[b.start:])
	if b.start += n; b.start == len(b.data) {
		if b.data, b.start = b.data[:0], 0; cap(b.data) > mostKept {
			b.data = nil
		}
	}
	c, st := b.conn, b.stream
	if st == nil || st.closed {
		return n // The end of the stream has given back what was not read.
	}
	c.giveBack(n)
	if !st.remoteEnded {
		if send := b.window.add(n); send > 0 {
			c.queueWindow(st.id, send)
		}
	}
	if c.queue.control > 0 {
		c.kick()
	}
	return n
}

// wait waits until something has changed, or returns os.ErrDeadlineExceeded.
func (b *body) wait() error {
	if !b.deadline.IsZero() {
		left := time.Until(b.deadline)
		if left <= 0 {
			return fmt.Errorf("http2: reading the body: %w", os.ErrDeadlineExceeded)
		}
		if b.timer == nil {
			b.timer = time.AfterFunc(left, b.wakeUp)
		} else {
			b.timer.Reset(left)
		}
	}
	b.wake.Wait()
	return nil
}

func (b *body) wakeUp() {
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	b.wake.Broadcast()
}

// Close implements io.Closer. What arrives later is not kept.
func (b *body) Close() error {
	c := b.conn
	c.mu.Lock()
	defer c.unlock()
	if b.closed = true; b.stream != nil && !b.stream.closed {
		c.giveBack(b.unread())
		c.kick()
	}
	b.data, b.start = nil, 0
	b.wake.Broadcast()
	return nil
}

// setDeadline bounds the reads.
func (b *body) setDeadline(t time.Time) {
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	b.deadline = t
	b.wake.Broadcast()
}

// add adds bytes that have arrived.
func (b *body) add(data []byte) {
	if len(data) == 0 {
		return
	}
	b.received += int64(len(data))
	if b.start > 0 && len(b.data)+len(data) > cap(b.data) {
		b.data = b.data[:copy(b.data, b.data[b.start:])]
		b.start = 0
	}
	b.data = append(b.data, data...)
	b.wake.Broadcast()
}

// unread returns how many bytes were not read.
func (b *body) unread() int { return len(b.data) - b.start }

// fail lets reads behind the data fail. Only the first error counts.
func (b *body) fail(err error) {
	if b.err == nil {
		b.err = err
	}
	b.wake.Broadcast()
}

// endOfStream notes that no more bytes come.
func (b *body) endOfStream() {
	if b.declared >= 0 && b.received != b.declared {
		b.fail(errTooLittle)
		return
	}
	b.fail(io.EOF)
}

var errTrailer = errors.New("http2: invalid trailer")

// addTrailers keeps the trailers of the last header. Those that were not declared are dropped.
func (b *body) addTrailers(c *conn) error {
	if b.trailer == nil {
		return nil
	}
	b.arrived = http.Header{}
	for _, f := range c.header.fields {
		name := c.canonical(f.Name)
		if !httpguts.ValidTrailerHeader(name) {
			return errTrailer
		}
		b.arrived[name] = append(b.arrived[name], f.Value)
	}
	return nil
}

// copyTrailers gives the request the trailers that it has declared.
func (b *body) copyTrailers() {
	for name, values := range b.arrived {
		if _, declared := b.trailer[name]; declared {
			b.trailer[name] = values
		}
	}
	b.arrived = nil
}

// end ends the use of the stream.
func (b *body) end() {
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	b.stream, b.data, b.start = nil, nil, 0
	b.fail(errBodyClosed)
	if b.timer != nil {
		b.timer.Stop()
	}
}
