package server

import (
	"net/http"
	"net/url"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

const (
	// headBytes is the size of the buffer for a header. Few headers are longer.
	headBytes = 8 << 10
	// mostFields bounds the fields of a header whose map is used again. Clearing a map costs
	// time for each field that it ever had.
	mostFields = 64
)

// transaction is what one request needs while it is in progress.
type transaction struct {
	request *http.Request
	ctx     *requestContext
	url     url.URL
	fields  http1.List
	body    body
	writer  writer

	start, end int // buf[start:end] is not read yet
	buf        [headBytes]byte
}

func (s *Server) take() *transaction {
	t, ok := s.transactions.Get().(*transaction)
	if !ok {
		t = new(transaction)
		t.writer.header = make(http.Header)
	}
	t.start, t.end = 0, 0
	return t
}

// release returns t to the pool.
func (s *Server) release(t *transaction) { s.transactions.Put(t) }

// reset forgets a request that has ended, but not the bytes behind it.
func (t *transaction) reset() {
	t.request, t.ctx = nil, nil
	t.url = url.URL{}
	t.fields.Reset()
	t.writer.fields.Reset()
	t.writer.header = emptied(t.writer.header)
	t.body, t.writer.conn = body{}, nil
	t.end = copy(t.buf[:], t.buf[t.start:t.end])
	t.start = 0
}

func emptied(h http.Header) http.Header {
	switch {
	case len(h) > mostFields:
		return make(http.Header)
	case len(h) > 0:
		clear(h)
	}
	return h
}

// unread returns the bytes that are in the buffer.
func (t *transaction) unread() []byte { return t.buf[t.start:t.end] }

// prepare makes the request for the handler, without a Header map. The request and its context are new: stages and
// stores may keep a context.
func (t *transaction) prepare(c *conn, head *http1.Head) {
	t.fields.Delete("Host")
	t.ctx = &requestContext{values: c.Context}
	r := new(http.Request).WithContext(t.ctx) // The only request: the one before it stays on the stack.
	r.Method, r.URL, r.Host, r.RequestURI = head.Method, &t.url, head.Host, head.Target
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Body, r.Close, r.RemoteAddr, r.TLS = http.NoBody, head.Close, c.remote, c.TLS
	if head.Length > 0 {
		t.body = body{conn: c, transaction: t, left: head.Length}
		r.Body, r.ContentLength = &t.body, head.Length
		if int64(t.end-t.start) < head.Length {
			c.arm(time.Time{}, 0) // The bounds of headers and idle connections do not concern the body.
		}
	}
	t.request = r
	t.writer.begin(c, t, head)
}
