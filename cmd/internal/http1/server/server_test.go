package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/server"
)

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// answer reads one answer with its body.
func answer(t *testing.T, from *bufio.Reader, method string) received {
	t.Helper()
	resp, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return received{resp.StatusCode, resp.ContentLength, string(body)}
}

// received is an answer.
type received struct {
	status int
	length int64
	body   string
}

// ended checks that the server has closed the connection.
func ended(t *testing.T, from *bufio.Reader) {
	t.Helper()
	if b, err := from.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read %q, %v; want a closed connection", b, err)
	}
}

func receive(t *testing.T, from <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		t.Fatalf("timed out: %s", what)
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(body))
}

func TestPipelinedRequests(t *testing.T) {
	conn, from := serve(t, echo).dial(t)
	send(t, conn, "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"+
		"POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nd\r\n0\r\n\r\n")
	for _, want := range []string{"POST /1 abc", "POST /2 d"} {
		if got := answer(t, from, "POST").body; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestSplitHeaders sends a request in two pieces, split at each byte.
func TestSplitHeaders(t *testing.T) {
	conn, from := serve(t, echo).dial(t)
	const request = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
	for i := 1; i < len(request); i++ {
		send(t, conn, request[:i])
		send(t, conn, request[i:])
		if got := answer(t, from, "POST").body; got != "POST /1 abc" {
			t.Fatalf("split at %d: %q", i, got)
		}
	}
}

func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, test := range []struct {
		name, method, body string
		handler            http.HandlerFunc
		status             int
		length             int64
	}{
		{"short body of unknown length", "GET", "abc", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") }, 200, 3},
		{"long body of unknown length", "GET", long, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) }, 200, -1},
		{"HEAD", "HEAD", "", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") }, 200, 3},
		{"204", "GET", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, http.StatusNoContent, 0},
		{"304", "GET", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, http.StatusNotModified, 0},
		{"nothing", "GET", "", func(http.ResponseWriter, *http.Request) {}, 200, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, from := serve(t, test.handler).dial(t)
			for range 2 { // The connection serves a second request.
				send(t, conn, strings.Replace(get, "GET", test.method, 1))
				if got := answer(t, from, test.method); got != (received{test.status, test.length, test.body}) {
					t.Errorf("status %d, length %d, %d bytes", got.status, got.length, len(got.body))
				}
			}
		})
	}
}

// TestEndedConnections covers answers behind which the connection closes.
func TestEndedConnections(t *testing.T) {
	for _, test := range []struct {
		name, request string
		handler       http.HandlerFunc
	}{
		{"the client asks", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", echo},
		{"the handler asks", get, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }},
		{"too short", get, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") }},
		{"abort", get, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"panic", get, func(http.ResponseWriter, *http.Request) { panic("fault") }},
		{"long unread body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n", func(http.ResponseWriter, *http.Request) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, from := serve(t, test.handler).dial(t)
			send(t, conn, test.request)
			if resp, err := http.ReadResponse(from, nil); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			ended(t, from)
		})
	}
}

// TestSlowBody sends a body after the bound for the header, which does not concern it.
func TestSlowBody(t *testing.T) {
	const bound = 50 * time.Millisecond
	started := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		echo(w, r)
	}, func(c *server.Config) { c.ReadHeader, c.Idle = bound, bound })
	conn, from := s.dial(t)
	send(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
	receive(t, started, "the handler")
	<-time.After(3 * bound)
	send(t, conn, "abc")
	if got := answer(t, from, "POST").body; got != "POST / abc" {
		t.Errorf("got %q", got)
	}
}

// TestContextsEnd covers what ends the context of a request in progress. An odd request is
// one that is lent to net/http.
func TestContextsEnd(t *testing.T) {
	odd := "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n"
	leave := func(_ *service, c *net.TCPConn) { _ = c.Close() }
	half := func(_ *service, c *net.TCPConn) { _ = c.CloseWrite() }
	reset := func(_ *service, c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() }
	shut := func(s *service, _ *net.TCPConn) { s.Server.Close() }
	for _, test := range []struct {
		name, request string
		end           func(*service, *net.TCPConn)
	}{
		{"close", get, leave},
		{"half-close", get, half},
		{"reset", get, reset},
		{"Close", get, shut},
		{"lent, close", odd, leave},
		{"lent, half-close", odd, half},
		{"lent, reset", odd, reset},
		{"lent, Close", odd, shut},
	} {
		t.Run(test.name, func(t *testing.T) {
			started, done := make(chan struct{}), make(chan struct{})
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				close(started)
				<-r.Context().Done()
				close(done)
			})
			conn, _ := s.dial(t)
			send(t, conn, test.request)
			receive(t, started, "the handler")
			test.end(s, conn)
			receive(t, done, "the end of the context")
		})
	}
}

// TestKeptContexts keeps the context of a request, and uses it after the request.
func TestKeptContexts(t *testing.T) {
	kept := make(chan context.Context, 2)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() {})
		kept <- r.Context()
	})
	conn, from := s.dial(t)
	for range 2 {
		send(t, conn, get)
		answer(t, from, "GET")
	}
	first, second := <-kept, <-kept
	if first == second || first.Err() == nil || first.Value(lendKey{}) != nil {
		t.Errorf("the second request has the context of the first, or the first has not ended: %v", first.Err())
	}
}

func TestLentConnectionsComeBack(t *testing.T) {
	conn, from := serve(t, echo).dial(t)
	for range 3 {
		send(t, conn, "POST /odd HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nContent-Length: 2\r\n\r\nab"+get)
		for _, want := range []string{"POST /odd ab", "GET / "} {
			if got := answer(t, from, "GET").body; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

func TestShutdownEndsIdleConnections(t *testing.T) {
	s := serve(t, echo)
	conn, from := s.dial(t)
	send(t, conn, get)
	answer(t, from, "GET")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	ended(t, from)
}
