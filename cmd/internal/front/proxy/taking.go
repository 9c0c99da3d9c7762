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

// mostInterim bounds the 1xx responses that one client request receives.
const mostInterim = 64

var errUpstreamStalled = errors.New("proxy: the upstream stopped reading the request's body for body_idle_timeout")

// watch returns a request that is canceled when the upstream does not accept the body's
// bytes within idle. A transport reads more of the body only after it has written the
// bytes before. With HTTP/2, a write also waits for the upstream's flow-control window.
// The caller calls stop when the handler ends.
func (b *body) watch(r *http.Request) (watched *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	if b.idle <= 0 {
		return r.WithContext(ctx), cancel
	}
	b.stallTimer = time.AfterFunc(b.idle, func() {
		if b.failure.CompareAndSwap(bodyFine, bodyUpstreamStalled) {
			cancel()
		}
	})
	b.stallTimer.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { b.stallTimer.Stop() },
	})
	return r.WithContext(ctx), func() {
		b.stallTimer.Stop()
		cancel()
	}
}

// writeBound is a connection to the upstream. Each write times out after idle. The bound
// covers bodies, HTTP/2 frames and upgraded connections.
type writeBound struct {
	net.Conn

	idle time.Duration
}

// Write implements net.Conn. A write that timed out may have sent some of the bytes, so
// the connection is no longer usable and is closed.
func (c *writeBound) Write(b []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.idle))
	n, err := c.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.Conn.Close()
	}
	return n, err
}

// CloseWrite closes the sending side of the connection.
func (c *writeBound) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// boundWrites returns a dial function whose connections bound their writes; idle 0 means
// no bound.
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
