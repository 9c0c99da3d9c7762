package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestProtocols checks that one port serves both protocols, with TLS and without.
func TestProtocols(t *testing.T) {
	served, trusting := certificate(t)
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto")) }))
	_, plain := start(t, p, nil, ServerConfig{})
	_, secure := start(t, p, nil, ServerConfig{TLS: served})
	for _, c := range []struct {
		name, url string
		protocols func(*http.Protocols)
		major     int
		proto     string
	}{
		{"HTTP/1.1", "http://" + plain, http1Only, 1, "http"},
		{"HTTP/2 by prior knowledge", "http://" + plain, http2, 2, "http"},
		{"HTTP/1.1 by TLS", "https://" + secure, http1Only, 1, "https"},
		{"HTTP/2 by TLS", "https://" + secure, http2, 2, "https"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &front{url: c.url, client: httpClient(t, trusting, c.protocols)}
			resp, body := f.get(t, "/v1/product")
			if resp.StatusCode != http.StatusOK || resp.ProtoMajor != c.major || body != c.proto {
				t.Errorf("got status %d over HTTP/%d: %q", resp.StatusCode, resp.ProtoMajor, body)
			}
		})
	}
	if got := talk(t, secure, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.Contains(got, "400 Bad Request") {
		t.Errorf("a client without TLS got %q", got)
	}
}

// talk sends raw bytes and reads until the connection ends.
func talk(t *testing.T, at, sent string) string {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { _, _ = io.WriteString(conn, sent) }()
	answer, err := io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("the connection is still open after %d bytes", len(sent))
	}
	return string(answer)
}

// TestSlowAndGreedyClients checks that clients that send too slowly, too much, or nothing
// are disconnected in time, and do not delay other clients.
func TestSlowAndGreedyClients(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(fine))
	served, _ := certificate(t)
	patience := ServerConfig{ReadHeader: 100 * time.Millisecond, Idle: 200 * time.Millisecond, MaxHeader: 16 << 10}
	_, plain := start(t, p, nil, patience)
	_, calm := start(t, p, nil, ServerConfig{MaxHeader: patience.MaxHeader}) // It has the time to read a whole header.
	patience.TLS = served
	_, secure := start(t, p, nil, patience)
	for _, c := range []struct{ name, at, sent, want string }{
		{"says nothing", plain, "", ""},
		{"sends nothing to a TLS server", secure, "", ""},
		{"stops in the first line", plain, "GET /v1/pro", "HTTP/1.1 400"},
		{"stops in the header", plain, "GET /v1/product HTTP/1.1\r\nHost: a\r\nX-Slow: ", ""},
		{"sends nothing more", plain, "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200"},
		{"stops in the next request", plain, "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\nGET /", "HTTP/1.1 200"},
		{"sends a field of 1 MiB", calm, "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "HTTP/1.1 431"},
		{"sends a header of 1 MiB", calm, "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: 0123456789\r\n", 1<<16) + "\r\n", "HTTP/1.1 431"},
		{"sends a path of 1 MiB", calm, "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 431"},
		{"begins HTTP/2 and stops", plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00"},
		{"sends two lengths", calm, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 400"},
		{"sends a length and chunks", calm, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked, x\r\n\r\n", "HTTP/1.1 501"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := talk(t, c.at, c.sent); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got response %.100q, want %q", got, c.want)
			}
		})
	}
	big := httpClient(t, nil, http2)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+plain+"/v1/product", http.NoBody)
	req.Header.Set("X-Big", strings.Repeat("x", 64<<10))
	if resp, err := big.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a field of 64 KiB over HTTP/2 got status %d", resp.StatusCode)
		}
	}
}

// TestConnectionLimit checks the connection limit. The next client waits while each
// connection has a request in flight, and replaces an idle connection.
func TestConnectionLimit(t *testing.T) {
	ln := opened(t, listen.Config{Address: "127.0.0.1:0", MaxConnections: 1})
	reached, release := make(chan struct{}, 2), make(chan struct{})
	_, at := start(t, beforeHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-release
	})), ln, ServerConfig{})
	first, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	fmt.Fprint(first, "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\n")
	<-reached
	answered := make(chan string, 1)
	go func() { answered <- talk(t, at, "GET /v1/product HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }()
	eventually(t, "the listener to reach its limit", func() bool { return ln.Stats().Pauses > 0 })
	select {
	case got := <-answered:
		t.Errorf("the second client got %q while the first was busy", got)
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if resp, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil || resp.Body.Close() != nil {
		t.Fatalf("the busy first client failed: %v", err)
	}
	if got := <-answered; !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("after the first client became idle the second got %q", got)
	}
}

// TestClientFaults checks that faults that any client can cause are not logged as
// warnings, and that other faults are.
func TestClientFaults(t *testing.T) {
	out := new(logs.Text)
	log := slog.NewLogLogger(clientFaults{slog.NewTextHandler(out, nil)}, slog.LevelWarn)
	log.Print("http: TLS handshake error from 192.0.2.7:1: EOF")
	log.Print("http: panic serving 192.0.2.7:1: oh")
	if got := out.String(); strings.Contains(got, "handshake") || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "panic") {
		t.Errorf("got log %q, want only the panic", got)
	}
	all := new(logs.Text)
	log = slog.NewLogLogger(clientFaults{slog.NewTextHandler(all, &slog.HandlerOptions{Level: slog.LevelDebug})}, slog.LevelWarn)
	log.Print("http: TLS handshake error from 192.0.2.7:1: EOF")
	if got := all.String(); !strings.Contains(got, "level=DEBUG") {
		t.Errorf("got debug log %q, want the handshake error at level DEBUG", got)
	}
	served, _ := certificate(t)
	quiet := new(logs.Text)
	_, at := start(t, beforeHandler(t, http.HandlerFunc(fine)), nil, ServerConfig{
		TLS: served, ReadHeader: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(quiet, nil)),
	})
	if got := talk(t, at, "\x16\x03\x01\x00\x01x"); strings.Contains(got, "200") || quiet.String() != "" {
		t.Errorf("a broken handshake got response %q and log line %q", got, quiet)
	}
}

// TestServeEnds checks that Serve returns an error for a broken listener, and returns at
// once on a drained server.
func TestServeEnds(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(fine))
	broken := opened(t, listen.Config{Address: "127.0.0.1:0"})
	broken.Close()
	s := NewServer(p, ServerConfig{Log: slog.New(slog.DiscardHandler)})
	if err := s.Serve(broken); err == nil || !strings.Contains(err.Error(), "serving on 127.0.0.1") {
		t.Errorf("Serve on a closed listener returned %v, want an error with its address", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	late := opened(t, listen.Config{Address: "127.0.0.1:0"})
	if err := s.Serve(late); err != nil {
		t.Errorf("Serve after Drain returned %v, want nil", err)
	}
	// Another program may already use the port.
	if _, err := late.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a drained server still listens: %v", err)
	}
}
