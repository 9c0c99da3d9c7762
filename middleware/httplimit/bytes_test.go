package httplimit_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// byteRule counts the bytes of all requests together: 10,000 an hour.
func byteRule(t *testing.T, bodies guard.Bytes) *guard.Guard {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "bytes", Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10_000, Per: 1000 * time.Hour}}},
		Bytes:    bodies, Announced: bodies&guard.RequestBytes != 0,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// used returns how many bytes the rule has counted.
func used(t *testing.T, g *guard.Guard) int64 {
	t.Helper()
	ticket := guard.Ticket{Answer: new(guard.Answer)}
	if err := g.Admit(t.Context(), &headgate.Request{Method: "GET", Path: "/", Kind: headgate.Peek}, &ticket); err != nil {
		t.Fatal(err)
	}
	defer ticket.Done(guard.Outcome{End: guard.Refused})
	return 10_000 - ticket.Answer.Results[0].Decision.Remaining
}

// TestBytes sends requests whose bodies pass whole, in part, or not at all. What has passed is counted, and heads are not.
func TestBytes(t *testing.T) {
	const both = guard.RequestBytes | guard.ResponseBytes
	answer := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, strings.Repeat("y", n))
		}
	}
	for _, c := range []struct {
		name    string
		bodies  guard.Bytes
		handler http.HandlerFunc
		sent    string // the request; the client then waits for the end, or leaves
		leaves  bool
		want    int64
	}{
		{"an upload and its answer", both, answer(50), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100), false, 150},
		{"only the upload", guard.RequestBytes, answer(50), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100), false, 100},
		{"only the answer", guard.ResponseBytes, answer(50), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100), false, 50},
		{"chunks", both, answer(1), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n2\r\nfg\r\n0\r\n\r\n", false, 8},
		{"no body", both, answer(0), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false, 0},
		{"HEAD", both, answer(50), "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false, 0},
		{"a body that is not read", both, fine, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100), false, 4},
		{"an upload that ends early", both, answer(0), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 300), true, 300},
		{"an upgraded connection", both, echoes, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello", false, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := byteRule(t, c.bodies)
			limited, ended := httplimit.New(g, httplimit.Options{})(c.handler), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				limited.ServeHTTP(w, r)
			}))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			if c.leaves {
				_ = conn.(*net.TCPConn).CloseWrite()
			}
			_, _ = io.Copy(io.Discard, conn)
			<-ended
			if got := used(t, g); got != c.want {
				t.Errorf("%d bytes are counted, want %d", got, c.want)
			}
		})
	}
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

// echoes upgrades the connection, and returns five bytes of it.
func echoes(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	var five [5]byte
	if _, err := io.ReadFull(rw, five[:]); err == nil {
		_, _ = rw.Write(five[:])
		_ = rw.Flush()
	}
}

// TestBytesAreRefused checks that the announced length is decided at first, and that a limit that is used up refuses.
func TestBytesAreRefused(t *testing.T) {
	g := byteRule(t, guard.RequestBytes)
	h := httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	for i, want := range []struct{ length, status int }{{9_000, 200}, {1_001, 429}, {1_000, 200}, {0, 429}, {10_001, 429}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", want.length))))
		if w.Code != want.status {
			t.Errorf("request %d of %d bytes: status %d, want %d", i, want.length, w.Code, want.status)
		}
	}
}
