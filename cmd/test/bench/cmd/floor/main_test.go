package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestServe sends two requests at once, and reads both answers.
func TestServe(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Close {
			t.Errorf("%s: the upstream should keep its connection", r.URL)
		}
		size := 10
		if r.URL.Path == "/large" {
			size = 100 << 10
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(make([]byte, size)) // The client checks the size.
	}))
	defer upstream.Close()
	for _, test := range []struct {
		name    string
		floor   *floor
		status  int
		answers []int64 // sizes
	}{
		{"forward", &floor{}, http.StatusOK, []int64{100 << 10, 10}},
		{"refuse", &floor{refuses: true}, http.StatusTooManyRequests, []int64{0, 0}},
		{"close", &floor{closes: true}, http.StatusOK, []int64{100 << 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.floor.upstream = strings.TrimPrefix(upstream.URL, "http://")
			client, server := net.Pipe()
			ended := make(chan struct{})
			go func() {
				test.floor.serve(server)
				close(ended)
			}()
			field := ""
			if test.floor.closes {
				field = closing
			}
			requests := fmt.Sprintf("GET /large HTTP/1.1\r\nHost: a\r\n%s\r\nGET /small HTTP/1.1\r\nHost: a\r\n\r\n", field)
			if _, err := io.WriteString(client, requests); err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewReader(client)
			for _, size := range test.answers {
				response, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, response.Body)
				_ = response.Body.Close() // It has been read to its end.
				if err != nil || n != size || response.StatusCode != test.status || response.Close != test.floor.closes {
					t.Errorf("got status %d, %d bytes, close %v and error %v, want %d, %d, %v", response.StatusCode, n, response.Close, err,
						test.status, size, test.floor.closes)
				}
			}
			_ = client.Close() // It ends serve.
			<-ended
		})
	}
}
