#!/bin/bash
# Product: net/http and net/http/httputil of Go 1.26, ReverseProxy.
# Guess:   A service announces the trailer X-Sum, sends the header field X-Sum: early,
#          and then the trailer X-Sum: late. The client behind the proxy gets the
#          header field and one value of the trailer, late, as from the service.
# Happens: The trailer that the client gets has two values, early and late, because
#          the proxy adds the trailer to the header map in which the field still stands.
# Follows: A gateway that charges by a trailer, or checks a sum in it, has to take the
#          last value behind such a proxy: the first one is a header field. A service
#          should not use one name for both.
set -eu
want='direct: header [early] trailer [late]; behind the proxy: header [early] trailer [early late]'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
)

const answer = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nX-Sum: early\r\nTransfer-Encoding: chunked\r\n\r\n" +
	"5\r\nhello\r\n0\r\nX-Sum: late\r\n\r\n"

// service answers each request with the same bytes.
func service(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(conn, answer)
			}
		}()
	}
}

func ask(address string) string {
	resp, err := http.Get(address)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		panic(err)
	}
	return fmt.Sprintf("header %v trailer %v", resp.Header["X-Sum"], resp.Trailer["X-Sum"])
}

func main() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go service(ln)
	at := &url.URL{Scheme: "http", Host: ln.Addr().String()}
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(at))
	defer proxy.Close()
	fmt.Printf("direct: %s; behind the proxy: %s\n", ask(at.String()), ask(proxy.URL))
}
GO
echo "version: $(go env GOVERSION), httputil.ReverseProxy"
got=$(go run .)
echo "values: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a field that is both header and trailer reaches the client as two values of the trailer"
