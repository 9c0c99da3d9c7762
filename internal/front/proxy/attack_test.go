package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/listen"
)

// TestDrainWaitsForFirstRequestOfNetHTTP checks that Drain does not abort the first request of
// a connection that the fast path has lent to net/http.
func TestDrainWaitsForFirstRequestOfNetHTTP(t *testing.T) {
	arrived := make(chan struct{})
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-time.After(1500 * time.Millisecond) // The grace of Drain is one second.
		_, _ = w.Write([]byte("fine"))
	}), onPlane)
	s, address := start(t, p, nil, ServerConfig{})
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(ctx) }()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("the request in flight got error %v, want its response", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the request in flight got status %d, want 200", resp.StatusCode)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// TestEarlyAnswerToSlowUpload checks that a client which is still sending its body when the
// service answers has time to read the answer before the connection is reset.
func TestEarlyAnswerToSlowUpload(t *testing.T) {
	behind := opened(t, listen.Config{Address: "127.0.0.1:0"})
	t.Cleanup(func() { _ = behind.Close() })
	go func() {
		for {
			up, err := behind.Accept()
			if err != nil {
				return
			}
			go func() {
				defer up.Close()
				_, _ = up.Read(make([]byte, 4096))
				_, _ = io.WriteString(up, "HTTP/1.1 413 Too\r\nContent-Length: 5\r\n\r\nearly")
				_, _ = io.Copy(io.Discard, up)
			}()
		}
	}()
	p := before(t, UpstreamConfig{URL: parsed(t, "http://"+behind.Addr().String())}, onPlane, func(c *Config) { c.BodyIdle = 10 * time.Second })
	_, address := start(t, p, nil, ServerConfig{})
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for range 10 { // The pieces of the body arrive while the response is on its way.
		<-time.After(20 * time.Millisecond)
		if _, err := c.Write(make([]byte, 10000)); err != nil {
			t.Fatalf("the connection was reset while the body was sent: %v", err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want 413", resp.StatusCode)
	}
}
