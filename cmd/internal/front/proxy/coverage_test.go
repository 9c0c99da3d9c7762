package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard/report"
)

// replayed sends requests one after another over one connection, or over a new one after a
// response that ends the connection. It returns which part of them took the fast path.
func replayed(t *testing.T, requests []string) float64 {
	t.Helper()
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fine(w, r)
	}), onThePlane(true))
	_, at := start(t, p, nil, ServerConfig{})
	r := replay{T: t, at: at}
	defer r.close()
	for _, sent := range requests {
		r.send(sent)
	}
	return float64(p.traffic.ServedBy(report.PathFast)) / float64(len(requests))
}

// replay is a client with at most one connection.
type replay struct {
	*testing.T

	at   string
	conn net.Conn // nil without a connection
	in   *bufio.Reader
}

func (r *replay) close() {
	if r.conn != nil {
		_ = r.conn.Close()
		r.conn = nil
	}
}

// send sends a request and reads its response.
func (r *replay) send(request string) {
	r.Helper()
	if r.conn == nil {
		conn, err := net.Dial("tcp", r.at)
		if err != nil {
			r.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		r.conn, r.in = conn, bufio.NewReader(conn)
	}
	if _, err := io.WriteString(r.conn, request); err != nil {
		r.Fatalf("%.100q: %v", request, err)
	}
	method, _, _ := strings.Cut(request, " ")
	for status := 0; status < http.StatusOK; {
		resp, err := http.ReadResponse(r.in, &http.Request{Method: method})
		if err != nil {
			r.Fatalf("%.100q: %v", request, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			r.Errorf("%.100q: %v", request, err)
		}
		_ = resp.Body.Close()
		if status = resp.StatusCode; resp.Close {
			r.close()
		}
	}
}

// TestOddRequestsComeBack checks that odd requests do not move their connection to net/http
// for good. Every tenth request of a connection is odd.
func TestOddRequestsComeBack(t *testing.T) {
	const least = 0.85
	odd := [...]string{
		"POST /v1/product HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
		"GET http://a/v1/product HTTP/1.1\r\nHost: a\r\n\r\n",
	}
	var requests []string
	for i := range 400 {
		if i%10 == 9 {
			requests = append(requests, odd[i/10%len(odd)])
			continue
		}
		requests = append(requests, fmt.Sprintf("GET /v1/product?n=%d HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\n\r\n", i))
	}
	share := replayed(t, requests)
	t.Logf("%.3f of the requests took the fast path", share)
	if share < least {
		t.Errorf("%.3f of the requests took the fast path, want at least %v", share, least)
	}
}
