#!/bin/bash
# Product: net/http of Go 1.26, Transport, with golang.org/x/net/http2 v0.61.0 for HTTP/2 without TLS.
# Guess:   A request whose context ends returns at once with the context's error,
#          whatever its body does, on HTTP/1.1 and on HTTP/2.
# Happens: On HTTP/2 it does. On HTTP/1.1, RoundTrip waits for the goroutine that
#          reads the request's body: it returns only when the body's Read does.
#          The service sees the end of the connection at once.
# Follows: A proxy that ends a request at a deadline must also end the reading of
#          its client's body. Otherwise a client that sends slowly keeps the
#          request, and its place in a limit of requests in flight, for as long as
#          it likes.
set -eu
want='HTTP/1.1 returns with the body, HTTP/2 returns with the context'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require golang.org/x/net v0.61.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/net/http2"
)

// returns says what ends a RoundTrip whose context has ended: the context, or the end of the body that does not arrive.
func returns(through http.RoundTripper, url string, arrived <-chan struct{}) string {
	ctx, cancel := context.WithCancel(context.Background())
	body, sender := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, "POST", url, body)
	if err != nil {
		panic(err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := through.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	sender.Write([]byte("x"))
	<-arrived
	cancel()
	select {
	case <-done:
		return "returns with the context"
	case <-time.After(2 * time.Second):
	}
	sender.Close()
	<-done
	return "returns with the body"
}

func main() {
	arrived := make(chan struct{}, 2)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body.Read(make([]byte, 1))
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	service.Config.Protocols = protocols
	service.Start()
	one := returns(&http.Transport{}, service.URL, arrived)
	two := returns(&http2.Transport{
		AllowHTTP: true,
		DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}, service.URL, arrived)
	fmt.Printf("HTTP/1.1 %s, HTTP/2 %s\n", one, two)
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: $(go env GOVERSION), golang.org/x/net v0.61.0"
got=$(go run .)
echo "a request whose context ended: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a cancelled request of HTTP/1.1 waits for its body"
