package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSlowFirstHeader checks that the time for the first header starts with the connection.
// A pause before the handshake or before the first byte does not extend the time, and neither
// does a line that the fast path leaves to net/http.
func TestSlowFirstHeader(t *testing.T) { //nolint:tparallel // Its bounds are for a machine without other tests.
	const bound = 900 * time.Millisecond
	served, trusting := certificate(t)
	for _, c := range []struct {
		name, start string
		secure      bool
	}{
		{"before the first byte", "GET /v1/pro", false},
		{"before the TLS handshake", "GET /v1/pro", true},
		{"before a line without CR", "GET / HTTP/1.1\nX: ", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := ServerConfig{ReadHeader: bound, Idle: time.Minute}
			if c.secure {
				config.TLS = served
			}
			_, at := start(t, beforeHandler(t, http.HandlerFunc(fine)), nil, config)
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if c.secure {
				client := trusting.Clone()
				client.NextProtos, client.ServerName = []string{"http/1.1"}, "example.com"
				conn = tls.Client(conn, client)
			}
			for _, part := range []string{c.start, "duct HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"} {
				<-time.After(bound * 2 / 3)
				_, _ = io.WriteString(conn, part)
			}
			answer, _ := io.ReadAll(conn)
			if strings.HasPrefix(string(answer), "HTTP/1.1 200") {
				t.Error("a request was served after read_header_timeout, want status 400")
			}
		})
	}
}
