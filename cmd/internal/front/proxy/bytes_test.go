package proxy

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
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// countingBytes adds a rule that counts all bytes, and a stage that learns them, to a proxy's guard.
func countingBytes(t *testing.T, s *watching) func(*Config) {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Stages: []guard.Stage{s}, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "bytes", Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1 << 40, Per: time.Hour}}},
		Bytes:    guard.RequestBytes | guard.ResponseBytes, Announced: true,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Guard, c.BodyIdle = g, time.Minute }
}

// TestBytes sends requests over both data planes. The bytes of bodies that have passed are counted, whole or in part, and heads are not.
func TestBytes(t *testing.T) {
	const large = 1 << 20 // The kernel moves such an answer.
	body := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, strings.Repeat("y", n))
		}
	}
	for _, c := range []struct {
		name           string
		upstream       http.HandlerFunc
		sent           string
		received, back int64 // back is -1 for the proxy's own answer
		leaves         bool  // the client ends its upload early
	}{
		{"an upload and its answer", body(50), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100), 100, 50, false},
		{"a large answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1048576")
			_, _ = io.WriteString(w, strings.Repeat("y", large))
		}, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0, large, false},
		{"chunks", body(1), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n2\r\nfg\r\n0\r\n\r\n", 7, 1, false},
		{"HEAD", body(50), "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0, 0, false},
		{"an upload that ends early", body(50), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 300), 300, -1, true},
		{"an answer that ends early", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, strings.Repeat("y", 300))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 300, false},
		{"an upgraded connection", func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			var five [5]byte
			if _, err := io.ReadFull(rw, five[:]); err == nil {
				_, _ = conn.Write([]byte("hello, hello"))
			}
		}, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello", 5, 12, false},
	} {
		for _, fast := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				s := new(watching)
				behind := httptest.NewServer(c.upstream)
				defer behind.Close()
				_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, countingBytes(t, s), onThePlane(fast)), nil, ServerConfig{})
				conn, err := net.Dial("tcp", at)
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
				_ = conn.Close()
				if o := s.outcome(t); o.Received != c.received || c.back >= 0 && o.Sent != c.back {
					t.Errorf("fast %v: %d bytes came and %d went, want %d and %d", fast, o.Received, o.Sent, c.received, c.back)
				}
			})
		}
	}
}

// TestBytesOfHTTP2 sends requests of HTTP/2 over both data planes: whole, with an upload of unknown length, and with an answer that the
// client leaves after its begin.
func TestBytesOfHTTP2(t *testing.T) {
	const large = 1 << 20
	for _, c := range []struct {
		name    string
		upload  string
		unknown bool // the request does not announce its length
		answer  int
		endless bool // the answer ends only when the client leaves
	}{
		{"an upload and its answer", strings.Repeat("x", 100), false, 50, false},
		{"an upload of unknown length", "abcdefg", true, 1, false},
		{"no bodies", "", false, 0, false},
		{"large bodies", strings.Repeat("x", large), false, large, false},
		{"an answer that the client leaves", "", false, 300, true},
	} {
		for _, fast := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				s := new(watching)
				behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, strings.Repeat("y", c.answer))
					if c.endless {
						_ = http.NewResponseController(w).Flush()
						<-r.Context().Done()
					}
				}))
				defer behind.Close()
				_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, countingBytes(t, s), onThePlane(fast)), nil, ServerConfig{})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/", strings.NewReader(c.upload))
				if err != nil {
					t.Fatal(err)
				}
				if c.unknown {
					r.ContentLength = -1
				}
				res, err := httpClient(t, nil, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.CopyN(io.Discard, res.Body, int64(c.answer))
				if !c.endless {
					_, _ = io.Copy(io.Discard, res.Body)
				}
				_ = res.Body.Close()
				o := s.outcome(t)
				if res.ProtoMajor != 2 || got != int64(c.answer) || o.Received != int64(len(c.upload)) || o.Sent != int64(c.answer) {
					t.Errorf("fast %v, HTTP/%d: %d bytes came and %d went, want %d and %d", fast, res.ProtoMajor, o.Received, o.Sent, len(c.upload),
						c.answer)
				}
			})
		}
	}
}
