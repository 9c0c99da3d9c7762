// Command bareproxy is httputil.ReverseProxy and nothing else: what Headgate's
// proxy costs is measured against it. It prints its address as its first line, and
// ends on SIGTERM.
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
	"syscall"
	"time"
)

func main() {
	upstream := flag.String("upstream", "", "URL of the upstream")
	flag.Parse()
	if err := run(*upstream); err != nil {
		fmt.Fprintln(os.Stderr, "bareproxy:", err)
		os.Exit(1)
	}
}

func run(upstream string) error {
	target, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	if target.Host == "" {
		return errors.New("--upstream is missing: give the URL of the upstream")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy(target), ReadHeaderTimeout: 10 * time.Second}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		<-ctx.Done()
		_ = server.Close() // Serve returns then, whatever Close says.
	}()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func proxy(target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport: transport(),
	}
}

// transport has the settings of Headgate's proxy: keep it as internal/front/proxy has it.
func transport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConns:          0,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
	}
}
