package httplimit

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/ahead"
	"github.com/headgate/headgate/internal/fields"
)

// mostBegun bounds the memory for the beginnings of bodies under one New, in bytes. Beyond it, rules decide on what was read.
const mostBegun = 256 << 20

// bodies reads the beginnings of bodies.
type bodies struct {
	pool ahead.Pool
	used atomic.Int64 // bytes
}

// grow takes memory.
func (m *bodies) grow(more int64) bool {
	if m.used.Add(more) <= mostBegun {
		return true
	}
	m.used.Add(-more)
	return false
}

// read implements Exchange.Body. The body of r is replaced. An error of the body is left to the handler that reads it.
func (m *bodies) read(r *http.Request, most int64) (data []byte, part bool, err error) {
	b := &begun{ReadCloser: r.Body, memory: m}
	part, _ = b.buffer.Fill(&ahead.Source{
		Pool: &m.pool, From: r.Body, Length: r.ContentLength, Most: most, Late: func() bool { return false },
		Grow: func(size int64) bool {
			more := size - b.size
			if !m.grow(more) {
				return false
			}
			b.size = size
			return true
		},
	})
	r.Body = b
	return b.buffer.Bytes(), part, nil
}

// begun is a body whose beginning was read before the decision.
type begun struct {
	io.ReadCloser

	memory *bodies
	mu     sync.Mutex   // guards the fields below
	buffer ahead.Buffer // nothing in it after release
	size   int64        // the memory that is taken
	over   bool         // buffer was read, or the handler has returned
}

// Read implements io.Reader. Handlers compare the error, so it is not wrapped.
func (b *begun) Read(p []byte) (int, error) {
	if n, err, again := b.again(p); again {
		return n, err
	}
	return b.ReadCloser.Read(p)
}

// again reads what was read before. It returns false if there is no more of it.
func (b *begun) again(p []byte) (n int, err error, again bool) { //nolint:revive // The error belongs to n.
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, nil, false
	}
	n, err = b.buffer.Read(p)
	if b.buffer.Len() == 0 {
		b.free()
		b.over = err == nil // An error, which may be io.EOF, is read again.
	}
	return n, err, n > 0 || err != nil || len(p) == 0
}

// free gives the memory back. The caller holds mu.
func (b *begun) free() {
	b.buffer.Release()
	b.memory.used.Add(-b.size)
	b.size = 0
}

// release is called when the handler has returned.
func (b *begun) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free()
	b.over = true
}

// narrowed returns the request with an Accept-Encoding whose answers can be read, if a rule settles by the body of the answer.
func narrowed(t *guard.Ticket, r *http.Request) *http.Request {
	if t.Scan() == nil {
		return r
	}
	narrow, changes := fields.ReadableEncoding(r.Header["Accept-Encoding"])
	if !changes {
		return r
	}
	again := *r
	again.Header = r.Header.Clone()
	again.Header["Accept-Encoding"] = []string{narrow}
	return &again
}
