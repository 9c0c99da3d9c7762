package httplimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headgate/headgate/guard"
)

// withContext gives the request a context that stages can end, if a stage can do so. Then the body ends with the
// context, and the stages are told of each wait for the client.
func withContext(t *guard.Ticket, w http.ResponseWriter, r *http.Request) *http.Request {
	ctx := t.Context(r.Context())
	if ctx == r.Context() {
		return r
	}
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		b := &received{ReadCloser: r.Body, ticket: t, from: http.NewResponseController(w), lingers: r.ProtoMajor == 1}
		b.release = context.AfterFunc(ctx, b.interrupt)
		r.Body = b
	}
	return r
}

// lingering is how long net/http reads and discards the rest of a body that a stage has ended. Closing the connection
// earlier would send a TCP reset, which can destroy the answer before the client reads it.
const lingering = time.Second

// received is the body of a request that a stage can end.
type received struct {
	io.ReadCloser

	ticket  *guard.Ticket
	from    *http.ResponseController
	lingers bool        // HTTP/1: the connection is closed after a body that is not read to its end
	release func() bool // ends the wait for the end of the context

	mu          sync.Mutex // guards the fields below and the order of SetReadDeadline calls
	ended       bool       // the end was read
	closed      bool       // the handler has returned
	interrupted bool
}

// Read implements io.Reader. Handlers compare the error, so it is not wrapped.
func (b *received) Read(p []byte) (int, error) {
	if b.ticket.Stopped() {
		return 0, context.Canceled
	}
	b.ticket.Receiving(true)
	n, err := b.ReadCloser.Read(p)
	b.ticket.Receiving(false)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.mu.Lock()
		b.ended = true
		b.mu.Unlock()
	case b.ticket.Stopped():
		err = context.Canceled // In place of the deadline of interrupt.
	}
	return n, err //nolint:wrapcheck // See above.
}

// interrupt ends the reading when a stage has ended the request. Without this, a handler that reads the body waits for the
// client. A writer without read deadlines leaves a blocked Read as it is.
func (b *received) interrupt() {
	if !b.ticket.Stopped() {
		return // The client's connection has failed, which the read itself reports.
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && !b.ended {
		b.interrupted = b.from.SetReadDeadline(time.Now()) == nil
	}
}

// close is called when the handler has returned, and answered says that an answer may be sent. After close, interrupt would
// set the deadline of another request.
func (b *received) close(answered bool) {
	b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	stopped := b.interrupted
	if !stopped && !b.ended && b.ticket.Stopped() { // A Read behind the end of the request has failed before interrupt came.
		stopped = b.from.SetReadDeadline(time.Now()) == nil
	}
	if b.closed = true; !answered || !stopped || !b.lingers {
		return
	}
	_ = b.from.Flush() // net/http reads the rest of the body before it writes the header.
	_ = b.from.SetReadDeadline(time.Now().Add(lingering))
}

// unanswered answers a request that a stage has ended, in the place of the empty 200 that net/http would send.
func (a *trackedWriter) unanswered() {
	h := a.Header()
	for _, name := range [...]string{"Content-Encoding", "Etag", "Last-Modified"} { // The handler may have set them for its own answer.
		h.Del(name)
	}
	p := problem{
		kind: typeBlank, title: "Service Unavailable", status: http.StatusServiceUnavailable, retryAfter: 1,
		detail: "The request was stopped before the service responded.",
	}
	p.send(a, p.append(nil))
}
