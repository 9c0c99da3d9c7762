package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLastAnswers checks the answers behind which the connection closes: all of their bytes and the
// end arrive, whatever their length, also if the client has sent bytes behind its request.
func TestLastAnswers(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &size)
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}), onThePlane(true))
	_, at := start(t, p, nil, ServerConfig{ReadHeader: 20 * time.Second, Idle: 20 * time.Second})
	for _, size := range []int{0, 1, 1 << 10, 20 << 10, 4 << 20} {
		for _, behind := range []string{"", "junk"} {
			for _, method := range []string{"GET", "POST"} {
				body := map[string]string{"GET": "", "POST": "Content-Length: 5\r\n"}[method]
				sent := map[string]string{"GET": "", "POST": "hello"}[method]
				got := talk(t, at, fmt.Sprintf("%s /%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n%s%s", method, size, body, sent, behind))
				head, rest, _ := strings.Cut(got, "\r\n\r\n")
				if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || strings.Count(rest, "x") != size {
					t.Errorf("%s of %d bytes, %q behind it: got %d bytes behind %q", method, size, behind, len(rest), head)
				}
			}
		}
	}
}

// TestSmallBodyIsOneWrite checks that the service gets the head and a small body at once.
func TestSmallBodyIsOneWrite(t *testing.T) {
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	first := make(chan string, 1)
	go func() {
		conn, err := behind.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 64<<10)
		n, _ := conn.Read(buf)
		first <- string(buf[:n])
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine")
	}()
	p := before(t, UpstreamConfig{URL: parsed(t, "http://"+behind.Addr().String()), BodyIdle: 20 * time.Second}, onThePlane(true),
		func(c *Config) { c.BodyIdle = 20 * time.Second })
	_, at := start(t, p, nil, ServerConfig{ReadHeader: 20 * time.Second, Idle: 20 * time.Second})
	text := strings.Repeat("headgate", 512)
	status, body := raw(t, at, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
	if status != "200" || body != "fine" {
		t.Errorf("got status %s, body %q", status, body)
	}
	if got := <-first; !strings.HasSuffix(got, "\r\n\r\n"+text) {
		t.Errorf("the first read of the service ends with %q, want the body", got[max(0, len(got)-50):])
	}
}
