package httpserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// bounded limits the duration and the body size of each request. body is in bytes. A longest of 0 is for
// handlers that end by themselves: a timer for each request costs more than a decision.
func bounded(next http.Handler, body int64, longest time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			now := time.Now()
			// The deadline also bounds the rest of the body, which net/http reads after the handler.
			_ = http.NewResponseController(w).SetReadDeadline(now.Add(ReadBody))
			r.Body = http.MaxBytesReader(w, r.Body, body)
			if conn, ok := r.Context().Value(connKey{}).(*framedConn); ok {
				awaited := &awaitedBody{ReadCloser: r.Body, conn: conn, begun: now}
				r.Body = awaited
				defer awaited.leave()
			}
		}
		if longest == 0 {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), longest)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// listened is a connection of package listen.
type listened interface {
	Idle()
	Busy()
	Await(since time.Time)
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, framedOf(c))
}

// awaitedBody is the body of a request whose connection may give way to a new one while the client does not send
// the body. Otherwise clients that never send their bodies could use all connections.
type awaitedBody struct {
	io.ReadCloser

	conn  listened
	begun time.Time
	ended bool
}

// Read implements io.Reader.
func (b *awaitedBody) Read(p []byte) (int, error) {
	b.conn.Await(b.begun)
	n, err := b.ReadCloser.Read(p)
	b.conn.Busy()
	b.ended = b.ended || err != nil
	return n, err
}

// leave ends the use by the handler. net/http reads over a body that the handler has not read, and writes the answer: the connection
// has time for both, however long the handler took.
func (b *awaitedBody) leave() {
	if !b.ended {
		b.conn.Await(time.Now())
	}
}

// tellIdle tells the listener which connections have no request in flight. The listener
// closes idle connections first.
func tellIdle(c net.Conn, state http.ConnState) {
	conn := framedOf(c)
	conn.changed(state)
	switch state {
	case http.StateActive:
		conn.Busy()
	case http.StateIdle:
		conn.Busy() // The connection may still await a body that the handler did not read.
		conn.Idle()
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}
