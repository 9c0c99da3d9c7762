package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"

	"github.com/headgate/headgate/guard"
)

// attend runs the next handler and ends the ticket with it: when the handler returns, or
// when a connection that it has hijacked is closed.
func attend(next http.Handler, t *guard.Ticket, w http.ResponseWriter, r *http.Request) {
	a := &attended{ResponseWriter: w, ticket: t}
	end := guard.Panicked
	defer func() { a.finish(end) }()
	next.ServeHTTP(a.writer(), r)
	if end = guard.Answered; r.Context().Err() != nil {
		end = guard.ClientLeft
	}
}

// attended is the writer of a request whose end a stage waits for. It notes the status.
type attended struct {
	http.ResponseWriter

	ticket   *guard.Ticket
	status   int
	hijacked bool
}

// writer gives the writer with the methods that the one inside has: handlers ask for
// them by type.
func (a *attended) writer() http.ResponseWriter {
	pusher, pushes := a.ResponseWriter.(http.Pusher)
	switch hijacks := hijackable(a.ResponseWriter); {
	case hijacks && pushes:
		return struct {
			attendedConn
			http.Pusher
		}{attendedConn{a}, pusher}
	case hijacks:
		return attendedConn{a}
	case pushes:
		return struct {
			*attended
			http.Pusher
		}{a, pusher}
	default:
		return a
	}
}

// hijackable reports whether http.ResponseController could take the connection from w, or
// from a writer that w wraps: past us, if we did not.
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

// finish ends the ticket, unless a hijacked connection goes on.
func (a *attended) finish(end guard.End) {
	if a.hijacked && end != guard.Panicked {
		return
	}
	if a.status == 0 && end == guard.Answered {
		a.status = http.StatusOK
	}
	a.ticket.Done(guard.Outcome{End: end, Status: a.status, Header: a.answered})
}

// answered looks up a header or a trailer of the answer.
func (a *attended) answered(name string) (string, bool) {
	for _, spelling := range [...]string{name, http.TrailerPrefix + name} {
		if values := a.Header()[spelling]; len(values) > 0 {
			return values[0], true
		}
	}
	return "", false
}

// Unwrap lets http.ResponseController find what the writer inside can do.
func (a *attended) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *attended) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		a.answers(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// answers notes the status; the first one counts.
func (a *attended) answers(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// detach notes that the connection is the handler's from now on.
func (a *attended) detach() {
	a.hijacked, a.status = true, http.StatusSwitchingProtocols
	a.ticket.Stream()
}

// Write implements http.ResponseWriter.
func (a *attended) Write(b []byte) (int, error) {
	a.answers(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (a *attended) Flush() { _ = a.FlushError() }

// FlushError is what http.ResponseController calls.
func (a *attended) FlushError() error {
	a.answers(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// attendedConn is the writer of a connection with one request at a time.
type attendedConn struct{ *attended }

// ReadFrom implements io.ReaderFrom, so that files are sent without a copy.
func (a attendedConn) ReadFrom(from io.Reader) (int64, error) {
	a.answers(http.StatusOK)
	if inner, ok := a.ResponseWriter.(io.ReaderFrom); ok {
		return inner.ReadFrom(from)
	}
	return io.Copy(struct{ io.Writer }{a.ResponseWriter}, from)
}

// Hijack implements http.Hijacker. The ticket then ends with the connection.
func (a attendedConn) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	told := false
	defer func() {
		if !told { // A stage has panicked: nothing else closes the connection.
			_ = conn.Close()
		}
	}()
	a.detach()
	told = true
	c := &hijacked{Conn: conn, ticket: a.ticket}
	// The runtime closes a connection that a program drops, without a call of Close.
	runtime.AddCleanup(c, closed, a.ticket)
	return c, rw, nil
}

// closed ends the ticket of a hijacked connection.
func closed(t *guard.Ticket) { t.Done(guard.Outcome{Status: http.StatusSwitchingProtocols}) }

// hijacked is a connection whose end is that of its request.
type hijacked struct {
	net.Conn

	ticket *guard.Ticket
}

// CloseWrite tells the client that nothing more comes, where the connection can.
func (c *hijacked) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close implements net.Conn.
func (c *hijacked) Close() error {
	err := c.Conn.Close()
	closed(c.ticket)
	return err
}
