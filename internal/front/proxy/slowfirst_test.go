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
// A pause before the handshake or before the first byte does not extend the time.
func TestSlowFirstHeader(t *testing.T) {
	const bound = 900 * time.Millisecond
	served, trusting := certificate(t)
	for name, secure := range map[string]bool{"before the first byte": false, "before the TLS handshake": true} {
		t.Run(name, func(t *testing.T) {
			config := ServerConfig{ReadHeader: bound, Idle: time.Minute}
			if secure {
				config.TLS = served
			}
			_, at := start(t, beforeHandler(t, http.HandlerFunc(fine)), nil, config)
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if secure {
				client := trusting.Clone()
				client.NextProtos, client.ServerName = []string{"http/1.1"}, "example.com"
				conn = tls.Client(conn, client)
			}
			for _, part := range []string{"GET /v1/pro", "duct HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"} {
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
