package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
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
