package httplimit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// serveTracked runs the next handler and ends the ticket with it. The ticket ends when the
// handler returns, or when a connection that the handler hijacked is closed.
// in counts the bytes of the body; nil without a body, or if no rule counts bytes.
func serveTracked(next http.Handler, t *guard.Ticket, c *CORS, w http.ResponseWriter, r *http.Request, in *counted) {
	a := &trackedWriter{
		ResponseWriter: w, ticket: t, reported: fields.Report(t.Facts()), streams: fields.DetectStream(t), in: in, scan: t.Scan(),
		head: r.Method == http.MethodHead,
	}
	end := guard.Panicked
	defer func() { a.finish(end) }()
	if a.scan != nil && a.scan.Stops() {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		inner := r.WithContext(ctx)
		defer copyBack(r, inner)
		a.cancel, r = cancel, inner
	}
	if body, ok := r.Body.(*received); ok && body.ticket == t {
		defer func() { body.close(end != guard.Panicked && !a.hijacked) }()
	}
	next.ServeHTTP(a.writer(), r)
	if end = guard.Answered; r.Context().Err() == nil {
		return
	}
	if end = guard.ClientLeft; a.status == 0 && t.Stopped() {
		c.Own(fields.Map(a.Header()), headers(r.Header))
		a.unanswered()
	}
}

// trackedWriter records the status of a request whose end a stage waits for.
type trackedWriter struct {
	http.ResponseWriter

	ticket   *guard.Ticket
	reported fields.Reported
	streams  fields.StreamDetector
	scan     *guard.Scan // reads the answer; nil if no rule settles by its body
	status   int
	hijacked bool
	head     bool     // net/http drops the body of the answer to HEAD
	in       *counted // the body of the request; nil if it is not counted
	sent     int64
	cancel   context.CancelCauseFunc // ends the context of the handler; nil if no rule stops answers
	spent    bool                    // the answer was ended because its key has no units left
}

// writer returns a writer with the same optional interfaces as the original, because
// handlers check for them with type assertions.
func (a *trackedWriter) writer() http.ResponseWriter {
	pusher, pushes := a.ResponseWriter.(http.Pusher)
	switch hijacks := hijackable(a.ResponseWriter); {
	case hijacks && pushes:
		return struct {
			trackedConn
			http.Pusher
		}{trackedConn{a}, pusher}
	case hijacks:
		return trackedConn{a}
	case pushes:
		return struct {
			*trackedWriter
			http.Pusher
		}{a, pusher}
	default:
		return a
	}
}

// hijackable reports whether http.ResponseController could hijack the connection from w or
// from a writer that w wraps. Without this check, the controller could bypass trackedWriter.
func hijackable(w http.ResponseWriter) bool {
	for {
		switch inner := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return false
		}
	}
}

// finish ends the ticket, unless a hijacked connection is still open.
func (a *trackedWriter) finish(end guard.End) {
	if a.hijacked && end != guard.Panicked {
		return
	}
	if a.spent {
		end = guard.Stopped
	}
	if a.status == 0 && end == guard.Answered {
		if a.status = http.StatusOK; a.scan != nil {
			a.scan.Begin(a.status, a.Header().Get("Content-Type"), a.Header().Get("Content-Encoding"))
		}
	}
	a.reported.Take(fields.Map(a.Header()))
	o := guard.Outcome{End: end, Status: a.status, Header: a.reported.Lookup(), Received: a.in.count()}
	if !a.head {
		o.Sent = a.sent
	}
	a.ticket.Done(o)
}

// Unwrap implements the interface with which http.ResponseController finds the original
// writer's methods.
func (a *trackedWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *trackedWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		a.answers(status)
	} else {
		a.reported.Take(fields.Map(a.Header())) // net/http sends the whole header map with a 103.
	}
	a.ResponseWriter.WriteHeader(status)
}

// answers records the status. Only the first status counts.
func (a *trackedWriter) answers(status int) {
	if a.status == 0 {
		a.status = status
		h := fields.Map(a.Header())
		a.reported.Take(h)
		a.streams.Header(status, h)
		if a.scan != nil {
			a.scan.Begin(status, a.Header().Get("Content-Type"), a.Header().Get("Content-Encoding"))
		}
	}
}

// detach records that the handler now owns the connection.
func (a *trackedWriter) detach() {
	a.hijacked, a.status = true, http.StatusSwitchingProtocols
	a.streams.Header(http.StatusSwitchingProtocols, fields.Map(nil))
	a.streams.Stream()
}

// Write implements http.ResponseWriter.
func (a *trackedWriter) Write(b []byte) (int, error) {
	a.answers(http.StatusOK)
	a.streams.Body(b)
	if a.scan != nil {
		if keep, stop := a.scan.Write(b); stop {
			return a.stop(b[:keep])
		}
	}
	n, err := a.ResponseWriter.Write(b)
	a.sent += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (a *trackedWriter) Flush() { _ = a.FlushError() }

// FlushError flushes the response. http.ResponseController calls it.
func (a *trackedWriter) FlushError() error {
	a.answers(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// trackedConn is the writer for a connection that can be hijacked.
type trackedConn struct{ *trackedWriter }

// ReadFrom implements io.ReaderFrom, so that files are sent without a copy.
func (a trackedConn) ReadFrom(from io.Reader) (int64, error) {
	a.answers(http.StatusOK)
	if inner, ok := a.ResponseWriter.(io.ReaderFrom); ok && !a.streams.Counts() && a.scan == nil {
		n, err := inner.ReadFrom(from)
		a.trackedWriter.sent += n
		return n, err
	}
	return io.Copy(struct{ io.Writer }{a.trackedWriter}, from)
}

// Hijack implements http.Hijacker. Afterwards the ticket ends when the connection closes.
func (a trackedConn) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	notified := false
	defer func() {
		if !notified { // A stage has panicked, and nothing else closes the connection.
			_ = conn.Close()
		}
	}()
	a.detach()
	notified = true
	u := &upgrade{ticket: a.ticket, in: a.in}
	c := &hijacked{Conn: conn, upgrade: u}
	// The runtime closes a garbage-collected connection without a call of Close.
	runtime.AddCleanup(c, (*upgrade).closed, u)
	if a.ticket.CountsBytes() {
		rw = c.count(rw)
	}
	return c, rw, nil
}

// hijacked is a connection that ends its request's ticket when it is closed.
type hijacked struct {
	net.Conn

	*upgrade

	counts bool
	early  []byte // what the server has read ahead; only if counts
}

// CloseWrite closes the sending side, if the connection supports it.
func (c *hijacked) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close implements net.Conn.
func (c *hijacked) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}
