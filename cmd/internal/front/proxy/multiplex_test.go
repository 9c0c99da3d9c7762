package proxy

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard/report"
)

// TestServersOfHTTP2 checks which server a client of HTTP/2 gets: the fast path, or net/http if the client does not begin with
// the preface, although TLS has negotiated HTTP/2.
func TestServersOfHTTP2(t *testing.T) {
	served, trusting := certificate(t)
	s, at := start(t, beforeHandler(t, http.HandlerFunc(fine), onThePlane(true)), nil, ServerConfig{TLS: served})
	client := httpClient(t, trusting, http2)
	resp, err := client.Get("https://" + at + "/v1/product")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if n := s.proxy.traffic.ServedBy(report.PathFast); resp.ProtoMajor != 2 || n != 1 {
		t.Errorf("%s: %d requests took the fast path", resp.Proto, n)
	}
	for name, sent := range map[string]string{
		"HTTP/1.1":             "GET /v1/product HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"the letters of PRI":   "PRI * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"nothing":              "",
		"a part of a preface":  http2Preface[:20],
		"another last letter":  http2Preface[:22] + "xx",
		"HTTP/1.1 with a body": "POST /v1/product HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
	} {
		t.Run(name, func(t *testing.T) {
			config := trusting.Clone()
			config.NextProtos, config.ServerName = []string{"h2"}, "example.com"
			conn, err := tls.Dial("tcp", at, config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(conn, sent)
			if !strings.Contains(sent, "/v1") {
				_ = conn.CloseWrite() // A request would be canceled.
			}
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(sent, "/v1") != strings.HasPrefix(string(answer), "HTTP/1.1 200") {
				t.Errorf("got %q", answer)
			}
		})
	}
	if fast, others := s.proxy.traffic.ServedBy(report.PathFast), s.proxy.traffic.ServedBy(report.PathHTTP2); fast != 1 || others < 2 {
		t.Errorf("%d requests took the fast path, and %d that of net/http", fast, others)
	}
}

// TestDrainBeforeThePreface checks that a client that negotiates HTTP/2 and sends nothing does not hold up the drain.
func TestDrainBeforeThePreface(t *testing.T) {
	served, trusting := certificate(t)
	s, at := start(t, beforeHandler(t, http.HandlerFunc(fine), onThePlane(true)), nil, ServerConfig{TLS: served})
	config := trusting.Clone()
	config.NextProtos, config.ServerName = []string{"h2"}, "example.com"
	conn, err := tls.Dial("tcp", at, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, "the connection", func() bool { return s.open.Load() == 1 })
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, "the end of the connection", func() bool { return s.open.Load() == 0 })
}
