package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"
)

// mostInterim bounds the interim answers (1xx) of one request that its client gets.
const mostInterim = 64

var errUntaken = errors.New("proxy: the upstream stopped reading the request's body for body_idle_timeout")

// watch returns a request that is canceled when the upstream leaves a part of its body
// untaken for idle. A transport reads the next part only when the part before is
// written, which by HTTP/2 also takes the upstream's window. The caller calls stop when
// the handler ends.
func (b *body) watch(r *http.Request) (watched *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	if b.idle <= 0 {
		return r.WithContext(ctx), cancel
	}
	b.untaken = time.AfterFunc(b.idle, func() {
		if b.failure.CompareAndSwap(bodyFine, bodyUntaken) {
			cancel()
		}
	})
	b.untaken.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { b.untaken.Stop() },
	})
	return r.WithContext(ctx), func() {
		b.untaken.Stop()
		cancel()
	}
}

// writeBound is a connection to the upstream. Each write to it ends within idle:
// of a body, of HTTP/2's frames, of a connection that has been upgraded.
type writeBound struct {
	net.Conn

	idle time.Duration
}

// Write implements net.Conn. A write that timed out may have sent a part, so that
// nothing can follow it: the connection ends.
func (c *writeBound) Write(b []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.idle))
	n, err := c.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.Conn.Close()
	}
	return n, err
}

// CloseWrite tells the upstream that nothing more comes.
func (c *writeBound) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// boundWrites gives every connection that dial makes a bound of its writes; idle 0 is none.
func boundWrites(dial dialFunc, idle time.Duration) dialFunc {
	if idle <= 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &writeBound{conn, idle}, nil
	}
}
