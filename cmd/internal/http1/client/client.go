package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// defaultHeader bounds an answer's header if Config.MaxHeader is not set.
const defaultHeader = 1 << 20

// Config configures a Client.
type Config struct {
	// Dial connects to the service.
	Dial func(ctx context.Context) (net.Conn, error)
	// Timeout bounds the time from the end of the request to the end of the final
	// answer's header; 0 means no bound.
	Timeout time.Duration
	// BodyIdle bounds each write to the service; 0 means no bound.
	BodyIdle time.Duration
	// MaxHeader bounds the header of an answer, in bytes; 0 means 1 MiB.
	MaxHeader int
	// MaxIdle bounds the idle connections; 0 keeps none.
	MaxIdle int
	// IdleTimeout bounds how long a connection is idle; 0 means no bound.
	IdleTimeout time.Duration
}

// Client sends requests to one service. A Client is safe for concurrent use.
type Client struct {
	config Config
	idle   pool
}

// New returns a Client. Config.Dial must be set.
func New(c Config) *Client {
	if c.MaxHeader <= 0 {
		c.MaxHeader = defaultHeader
	}
	return &Client{config: c, idle: pool{most: c.MaxIdle, timeout: c.IdleTimeout}}
}

// CloseIdleConnections closes all idle connections. Connections in use are not affected.
func (c *Client) CloseIdleConnections() { c.idle.closeAll() }

// Do sends a request and returns when the header of the final answer is read. After nil,
// the caller must close the Answer. Do sends a request again, once, if a connection that
// was idle fails before the first byte of the answer, and the request has no body and a safe
// method.
func (c *Client) Do(ctx context.Context, r *Request, a *Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.reset(c)
	head, err := a.buffer.appendHead(r)
	if err == nil {
		err = c.do(ctx, head, r, a)
	}
	if err != nil {
		a.release()
	}
	return err
}

func (c *Client) do(ctx context.Context, head []byte, r *Request, a *Answer) error {
	for fresh := false; ; {
		conn, err := c.connect(ctx, r, fresh)
		if err != nil {
			return err
		}
		err = a.exchange(ctx, conn, head, r)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errStale):
			continue
		}
		if !conn.reused || a.answered || ctx.Err() != nil || isTimeout(err) || !r.repeatable() {
			return err
		}
		fresh = true
	}
}

// connect returns an idle connection, or a new one if there is none or fresh is set. An
// idle connection is checked now if the request has a body, else when the head is written.
func (c *Client) connect(ctx context.Context, r *Request, fresh bool) (*conn, error) {
	if !fresh {
		if conn := c.idle.get(time.Now(), r.hasBody()); conn != nil {
			conn.reused = true
			return conn, nil
		}
	}
	raw, err := c.config.Dial(ctx)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		return nil, err
	}
	return newConn(raw), nil
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// repeatable reports whether the request may be sent twice.
func (r *Request) repeatable() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return !r.hasBody()
	}
	return false
}
