// Command bareproxy runs httputil.ReverseProxy without additions. The benchmark compares
// Headgate's proxy with it. The command prints its address on its first line and ends on
// SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	upstream := flag.String("upstream", "", "URL of the upstream")
	pool := flag.Bool("pool", false, "reuse the buffers for bodies")
	flag.Parse()
	if err := run(*upstream, *pool); err != nil {
		fmt.Fprintln(os.Stderr, "bareproxy:", err)
		os.Exit(1)
	}
}

func run(upstream string, pool bool) error {
	target, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	if target.Host == "" {
		return errors.New("--upstream is missing: set the URL of the upstream, for example http://127.0.0.1:8000")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy(target, pool), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		<-ctx.Done()
		_ = server.Close() // Serve returns even when Close fails.
	}()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// proxy forwards requests as Headgate's proxy does. A pool saves a buffer of 32 KiB for
// each request. The benchmark runs both variants, to measure the effect of the pool.
func proxy(target *url.URL, pool bool) *httputil.ReverseProxy {
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport: transport(),
	}
	if pool {
		p.BufferPool = &buffers{}
	}
	return p
}

// transport returns the settings of NewTransport in cmd/internal/front/proxy. Change both
// together.
func transport() *http.Transport {
	const idleConnections = 4096
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

const bufferBytes = 32 << 10

// buffers pools the buffers with which the proxy copies bodies.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[bufferBytes]byte); ok {
		return buf[:]
	}
	return make([]byte, bufferBytes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buf []byte) {
	b.pool.Put((*[bufferBytes]byte)(buf[:bufferBytes]))
}
