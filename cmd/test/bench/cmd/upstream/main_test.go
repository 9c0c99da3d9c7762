package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestServe sends requests on one connection. The last request closes it.
func TestServe(t *testing.T) {
	client, server := net.Pipe()
	ended := make(chan struct{})
	go func() {
		newService().serve(server)
		close(ended)
	}()
	answers := bufio.NewReader(client)
	for _, test := range []struct {
		request string
		size    int
		least   time.Duration
	}{
		{"GET /1k HTTP/1.1\r\nHost: a\r\n\r\n", 1 << 10, 0},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", 1 << 10, 0},
		{"GET /100k HTTP/1.1\r\nHost: a\r\n\r\n", 100 << 10, 0},
		{"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", 1 << 10, 100 * time.Millisecond},
		{"GET /10m HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 10 << 20, 0},
	} {
		start := time.Now()
		if _, err := io.Copy(client, strings.NewReader(test.request)); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%q: %v", test.request, err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close() // It has been read to its end.
		if err != nil || response.StatusCode != http.StatusOK || n != int64(test.size) || time.Since(start) < test.least {
			t.Errorf("%q: got status %d, %d bytes, error %v after %v, want 200 and %d bytes after %v",
				test.request, response.StatusCode, n, err, time.Since(start), test.size, test.least)
		}
	}
	<-ended
}
