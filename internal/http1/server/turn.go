package server

import (
	"net/http"
	"net/url"
	"time"

	"github.com/headgate/headgate/internal/http1"
)

const (
	// headBytes is the size of the buffer for a header. Few headers are longer.
	headBytes = 8 << 10
	// mostFields bounds the fields of a header whose map is used again. Clearing a map costs
	// time for each field that it ever had.
	mostFields = 64
)

// turn is what one request needs while it is in progress.
type turn struct {
	request  *http.Request // has ctx
	template http.Request  // request without a request's values
	ctx      *requestContext
	url      url.URL
	header   http.Header
	fields   http1.Fields
	body     body
	writer   writer

	start, end int // buf[start:end] is not read yet
	buf        [headBytes]byte
}

func (s *Server) take() *turn {
	t, ok := s.turns.Get().(*turn)
	if !ok {
		t = &turn{header: make(http.Header)}
		t.writer.header = make(http.Header)
		t.renew()
	}
	t.start, t.end = 0, 0
	return t
}

// renew gives t a new context.
func (t *turn) renew() {
	t.ctx = new(requestContext)
	t.template = http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	t.request = t.template.WithContext(t.ctx)
	t.template = *t.request
}

// release returns t to the pool. It keeps nothing of the last request.
func (s *Server) release(t *turn) {
	t.ctx.values = nil
	s.turns.Put(t)
}

// reset forgets a request that has ended, but not the bytes behind it.
func (t *turn) reset() {
	*t.request = t.template
	t.url = url.URL{}
	t.header, t.writer.header = emptied(t.header), emptied(t.writer.header)
	t.body, t.writer.conn = body{}, nil
	if !t.ctx.reuse() {
		t.renew()
	}
	t.end = copy(t.buf[:], t.buf[t.start:t.end])
	t.start = 0
}

func emptied(h http.Header) http.Header {
	if len(h) > mostFields {
		return make(http.Header)
	}
	clear(h)
	return h
}

// unread returns the bytes that are in the buffer.
func (t *turn) unread() []byte { return t.buf[t.start:t.end] }

// prepare sets the request of the handler.
func (t *turn) prepare(c *conn, head *http1.Head) {
	r := t.request
	r.Method, r.Host, r.RequestURI, r.RemoteAddr = head.Method, head.Host, head.Target, c.remote
	r.URL, r.Header, r.TLS, r.Close = &t.url, t.header, c.TLS, head.Close
	delete(t.header, "Host")
	t.ctx.values = c.Context
	r.Body = http.NoBody
	if head.Length > 0 {
		t.body = body{conn: c, turn: t, left: head.Length}
		r.Body, r.ContentLength = &t.body, head.Length
		if int64(t.end-t.start) < head.Length {
			c.arm(time.Time{}, 0) // The bounds of headers and idle connections do not concern the body.
		}
	}
	t.writer.begin(c, t, head)
}
