package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/testkit/rawhttp2"
)

// TestMalformedCalls checks that a malformed gRPC or Connect call gets an error in its own
// protocol. Clients treat a plain 400 as a server error.
func TestMalformedCalls(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("an invalid request reached the service: %v", r)
	}))
	_, at := start(t, p, nil, ServerConfig{})
	for name, fault := range map[string][3]string{ // The values are :path, :authority and x-client-id.
		"a value with a blank":     {"/v1/product", "a", "K "},
		"an invalid host":          {"/v1/product", `a"b`, "K"},
		"a path with two meanings": {"/v1/..;/product", "a", "K"},
	} {
		for kind, want := range map[string]string{
			"application/grpc":         "200 application/grpc 3",
			"application/connect+json": "200 application/connect+json ",
			"application/json":         "400 application/json ",
			"text/plain":               "400 application/problem+json ",
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				pairs := []string{
					":method", "POST", ":scheme", "http", ":path", fault[0], ":authority", fault[1], "content-type", kind, "x-client-id", fault[2],
				}
				if kind == "application/json" {
					pairs = append(pairs, "connect-protocol-version", "1")
				}
				got := rawhttp2.Send(t, at, make([]byte, 5), pairs...)
				if said := got[":status"] + " " + got["content-type"] + " " + got["grpc-status"]; said != want {
					t.Errorf("got response %q, want %q", said, want)
				}
			})
		}
	}
}

// TestFoldedCalls checks HTTP/1.1 calls with a folded line in the header or trailer. They
// also get an error in their protocol, and the connection closes.
func TestFoldedCalls(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(fine))
	_, at := start(t, p, nil, ServerConfig{})
	const head = "POST /v1/product HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web\r\n"
	for name, sent := range map[string]string{
		"header":  head + "X-Client-Id: K\r\n L\r\nContent-Length: 0\r\n\r\n",
		"trailer": head + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n 2\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := talk(t, at, sent)
			if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "\r\nGrpc-Status: 3\r\n") || !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("got response %q, want INVALID_ARGUMENT and a closed connection", got)
			}
		})
	}
}
