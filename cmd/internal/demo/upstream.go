package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	// work is the time that the upstream needs for a request.
	work           = 2 * time.Millisecond
	upstreamHeader = 5 * time.Second
)

// Upstream is the service behind the proxy.
type Upstream struct {
	http   http.Server
	at     net.Addr
	served atomic.Uint64
	ended  chan error
}

// StartUpstream serves on a free port of the loopback interface.
func StartUpstream(ctx context.Context) (*Upstream, error) {
	var c net.ListenConfig
	ln, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: start the upstream: %w", err)
	}
	u := &Upstream{at: ln.Addr(), ended: make(chan error, 1)}
	u.http = http.Server{Handler: u, ReadHeaderTimeout: upstreamHeader}
	go func() { u.ended <- u.http.Serve(ln) }()
	return u, nil
}

// ServeHTTP gives every request the same answer.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(work):
	case <-r.Context().Done():
		return
	}
	u.served.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{\"price\": 42}\n"))
}

// URL returns the address of the service.
func (u *Upstream) URL() *url.URL { return &url.URL{Scheme: "http", Host: u.at.String()} }

// Served returns the number of requests that reached the service.
func (u *Upstream) Served() uint64 { return u.served.Load() }

// Close stops the service.
func (u *Upstream) Close() error {
	err := u.http.Close()
	if ended := <-u.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
