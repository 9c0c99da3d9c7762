package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// frameConfiguration has short timeouts, so that unfinished requests are aborted soon.
const frameConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: secret, match: {path: /secret/*}, key: [all], limits: ["0/s"]}
proxy:
  listen: "127.0.0.1:0"
  max_header: 16KiB
  read_header_timeout: 1s
  idle_timeout: 2s
  body_idle_timeout: 1s
  upstream: "%s"
`

// TestHeaderTricks sends headers that HTTP/2 allows and HTTP/1 does not, because the upstream
// gets HTTP/1. Each is refused, or reaches the upstream as one strict request.
func TestHeaderTricks(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, frameConfiguration, behind.url)
	idle := quietly(t, i, behind)
	for _, c := range []struct {
		name    string
		want    outcome
		target  string
		changes []string
	}{
		{"a plain request", "200", "/x", nil},
		{"a forbidden path", "429", "", []string{":path", "/secret/x"}},
		{"a forbidden path, escaped", "429", "", []string{":path", "/x/../%73ecret"}},
		{"a path with a host", "429", "", []string{":path", "http://other/secret/x"}},
		{"a path of another kind", "400", "", []string{":path", "http:secret/x"}},
		{"a star", "400", "", []string{":path", "*"}},
		{"a path without a slash", reset, "", []string{":path", "secret/x"}},
		{"an empty path", reset, "", []string{":path", ""}},
		{"a space in a path", "200", "/x%20HTTP/1.0", []string{":path", "/x HTTP/1.0"}},
		{"a space in a query", "200", "/x?a%20HTTP/1.0", []string{":path", "/x?a HTTP/1.0"}},
		{"a fragment", "200", "/x%23y", []string{":path", "/x#y"}},
		{"a request in a path", reset, "", []string{":path", "/x HTTP/1.1\r\nHost: evil\r\n\r\nGET /smuggled"}},
		{"a request in a query", reset, "", []string{":path", "/x?a HTTP/1.1\r\nHost: evil\r\n\r\nGET /smuggled"}},
		{"NUL in a query", reset, "", []string{":path", "/x?\x00"}},
		{"a request in a method", reset, "", []string{":method", "GET / HTTP/1.1\r\nHost: evil\r\n\r\nGET"}},
		{"a path in a method", "400", "", []string{":method", "GET /secret/x"}},
		{"an empty method", reset, "", []string{":method", ""}},
		{"no method", reset, "", []string{"-:method", ""}},
		{"no scheme", reset, "", []string{"-:scheme", ""}},
		{"no path", reset, "", []string{"-:path", ""}},
		{"no authority", "200", "/x", []string{"-:authority", "", "host", "b"}},
		{"two hosts: the first counts", "200", "/x", []string{"host", "evil"}},
		{"a user in the authority", reset, "", []string{":authority", "u@a"}},
		{"a path in the authority", "400", "", []string{":authority", "a/secret"}},
		{"a space in the authority", "400", "", []string{":authority", "a b"}},
		{"a field in the authority", reset, "", []string{":authority", "a\r\nX: y"}},
		{"an unknown field of the frame", reset, "", []string{":foo", "x"}},
		{"an answer's field", reset, "", []string{":status", "200"}},
		{"capitals in a name", reset, "", []string{"X-A", "1"}},
		{"a space in a name", reset, "", []string{"x a", "1"}},
		{"a colon in a name", reset, "", []string{"x:a", "1"}},
		{"no name", reset, "", []string{"", "1"}},
		{"a line end in a name", reset, "", []string{"x\r\ny", "1"}},
		{"a field in a value", reset, "", []string{"x", "a\r\nContent-Length: 5"}},
		{"a line feed in a value", reset, "", []string{"x", "a\nb"}},
		{"a carriage return in a value", reset, "", []string{"x", "a\rb"}},
		{"NUL in a value", reset, "", []string{"x", "a\x00b"}},
		{"spaces around a value", "400", "", []string{"x", " a "}},
		{"a tab before a value", "400", "", []string{"x", "\ta"}},
		{"chunks", "400", "", []string{"transfer-encoding", "chunked"}},
		{"a connection's field", "400", "", []string{"connection", "x-client-id", "x-client-id", "a"}},
		{"an upgrade", "400", "", []string{"upgrade", "h2c"}},
		{"another connection's field", "400", "", []string{"proxy-connection", "keep-alive"}},
		{"trailers are welcome", "200", "/x", []string{"te", "trailers"}},
		{"and nothing else", "400", "", []string{"te", "trailers, deflate"}},
		{"two cookies", "200", "/x", []string{"cookie", "a=b", "cookie", "c=d"}},
		{"a tunnel", "405", "", []string{":method", "CONNECT", "-:scheme", "", "-:path", ""}},
		{"a tunnel with a path", reset, "", []string{":method", "CONNECT"}},
		{"a socket in a tunnel", reset, "", []string{":method", "CONNECT", ":protocol", "websocket"}},
		{"a long field", closed, "", []string{"x", strings.Repeat("x", 100_000)}},
	} {
		f := dialFrames(t, i.Proxy)
		got := f.until(f.open(true, headerOf(c.changes...)...))
		f.conn.Close()
		// An invalid header may also close the whole connection.
		if got != c.want && (c.want != reset || got != closed) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		target := ""
		for _, r := range behind.take() {
			if target += r.target; r.one("host") != "a" && r.one("host") != "b" || strings.Contains(r.raw, "evil") {
				t.Errorf("%s: at the upstream\n%s", c.name, r.raw)
			}
		}
		if target != c.target {
			t.Errorf("%s: %q at the upstream, want %q", c.name, target, c.target)
		}
	}
	settles(t, i, behind, idle)
}

// TestLengthTricks: a body that differs from its Content-Length reaches the upstream as an
// incomplete request or not at all. An invalid Content-Length is refused.
func TestLengthTricks(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, frameConfiguration, behind.url)
	idle := quietly(t, i, behind)
	for _, c := range []struct {
		name, sent string
		lengths    []string
		want       outcome
	}{
		{"the length that it has", "hello", []string{"5"}, "200"},
		{"no length", "hello", nil, "200"},
		{"shorter than it says", "hello", []string{"6"}, reset},
		{"longer than it says", "hello" + smuggled, []string{"5"}, reset},
		{"a length of nothing", smuggled, []string{"0"}, reset},
		{"two lengths", "hello", []string{"5", "6"}, "400"},
		{"a length twice", "hello", []string{"5", "5"}, "400"},
		{"a length with a sign", "hello", []string{"+5"}, "400"},
		{"a list of lengths", "hello", []string{"5, 5"}, "400"},
		{"a negative length", "hello", []string{"-5"}, "400"},
		{"an empty length", "hello", []string{""}, "400"},
	} {
		path := "/" + strings.ReplaceAll(c.name, " ", "-")
		changes := []string{":method", "POST", ":path", path}
		for _, length := range c.lengths {
			changes = append(changes, "content-length", length)
		}
		f := dialFrames(t, i.Proxy)
		id := f.open(false, headerOf(changes...)...)
		_ = f.WriteData(id, true, []byte(c.sent))
		got := f.until(id)
		f.conn.Close()
		// With a wrong length, the stream may be reset before its answer.
		if got != c.want && (c.want != "400" || got != reset) && (c.want != reset || got != "400") {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		for _, r := range behind.take() {
			if r.target != path {
				continue // This request belongs to an earlier stream that was reset in flight.
			}
			if c.want == "400" || c.want == "200" && r.body != c.sent || c.want == reset && r.body != "" && r.body != "hello" {
				t.Errorf("%s: the upstream reads %q", c.name, r.body)
			}
		}
	}
	settles(t, i, behind, idle)
}

// TestResetsLeaveOtherStreams: a client resets streams before their handlers start. Its
// connection and its other streams continue.
func TestResetsLeaveOtherStreams(t *testing.T) {
	t.Parallel()
	arrived, answer := make(chan struct{}), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			close(arrived)
			<-answer
		}
	}))
	defer behind.Close()
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	i := start(t, strings.Replace(frameConfiguration, "body_idle_timeout: 1s", "", 1), behind.URL)
	f := dialFrames(t, i.Proxy)
	first := f.open(true, headerOf(":path", "/first")...)
	<-arrived
	for range 200 {
		for range 5 {
			id := f.open(false, headerOf(":method", "POST", ":path", "/left")...)
			_ = f.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if got := f.until(f.open(true, headerOf()...)); got != "200" {
			t.Fatalf("a stream after others were reset: %s, want 200", got)
		}
	}
	release()
	if got := f.until(first); got != "200" {
		t.Errorf("the stream from before the resets: %s, want 200", got)
	}
}

// TestFrameFloods sends frames that cost the client nothing. The connection may be closed.
// Meanwhile the proxy serves other clients and uses little memory, and afterwards no goroutine
// of the flood remains.
func TestFrameFloods(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		fmt.Fprint(w, "fine")
	}))
	defer behind.Close()
	i := start(t, frameConfiguration, behind.URL)
	idle := quietly(t, i, behind)
	before := peak(t, i.command.Process.Pid)
	rest := func(f *frames) outcome { return f.until(f.open(true, headerOf()...)) }
	for name, flood := range map[string]func(f *frames) outcome{
		"open and cancel": func(f *frames) outcome {
			for range 1000 {
				id := f.open(true, headerOf(":path", "/slow")...)
				_ = f.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			return rest(f)
		},
		"open and leave": func(f *frames) outcome {
			for range 1000 {
				f.open(true, headerOf(":path", "/slow")...)
			}
			return rest(f)
		},
		"open and ask for nothing": func(f *frames) outcome {
			for range 1000 {
				f.open(false, headerOf(":method", "POST")...)
			}
			return rest(f)
		},
		"a header without end": func(f *frames) outcome {
			id := uint32(1)
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(headerOf()...)})
			for range 10_000 {
				if f.WriteContinuation(id, false, f.fields("x", strings.Repeat("y", 1000))) != nil {
					break
				}
			}
			return f.until(id)
		},
		"a header of nothing without end": func(f *frames) outcome {
			id := uint32(1)
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(headerOf()...)})
			for range 100_000 {
				if f.WriteContinuation(id, false, nil) != nil {
					break
				}
			}
			return f.until(id)
		},
		"a header that is small on the wire": func(f *frames) outcome {
			field := []string{"x", strings.Repeat("y", 4000)}
			all := f.fields(field...)
			for range 1000 { // Each field takes one byte by the header table.
				all = append(all, f.fields(field...)...)
			}
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(f.fields(headerOf()...), all...), EndStream: true, EndHeaders: true})
			return f.until(1)
		},
		"pings": func(f *frames) outcome {
			for range 50_000 {
				if f.WritePing(false, [8]byte{1}) != nil {
					break
				}
			}
			return rest(f)
		},
		"settings": func(f *frames) outcome {
			for range 50_000 {
				if f.WriteSettings() != nil {
					break
				}
			}
			return rest(f)
		},
		"priorities": func(f *frames) outcome {
			for n := range uint32(50_000) {
				if f.WritePriority(2*n+1, http2.PriorityParam{StreamDep: 2*n + 3, Weight: 1}) != nil {
					break
				}
			}
			f.next = 100_001
			return rest(f)
		},
		"data of no length": func(f *frames) outcome {
			id := f.open(false, headerOf(":method", "POST")...)
			for range 50_000 {
				if f.WriteData(id, false, nil) != nil {
					break
				}
			}
			_ = f.WriteData(id, true, nil)
			return f.until(id)
		},
		"no room for the answer": func(f *frames) outcome { return rest(f) },
		"frames that are too long": func(f *frames) outcome {
			_ = f.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<20))
			return f.until(1)
		},
		"a stream of the server's": func(f *frames) outcome {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, BlockFragment: f.fields(headerOf()...), EndStream: true, EndHeaders: true})
			return f.until(2)
		},
		"a header that is none": func(f *frames) outcome {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xff}, 100), EndStream: true, EndHeaders: true})
			return f.until(1)
		},
		"a window beyond its bound": func(f *frames) outcome {
			_ = f.WriteWindowUpdate(0, 1<<31-1)
			_ = f.WriteWindowUpdate(0, 1<<31-1)
			return rest(f)
		},
	} {
		f := dialFrames(t, i.Proxy, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		began := time.Now()
		got := flood(f)
		if resp, _ := get(t, "http://"+i.Proxy+"/"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: beside it others are answered %d", name, resp.StatusCode)
		}
		f.conn.Close()
		if elapsed := time.Since(began); elapsed > 10*time.Second || !slices.Contains([]outcome{"200", "431", reset, closed}, got) {
			t.Errorf("%s: %s after %v", name, got, elapsed)
		} else {
			t.Logf("%s: %s after %v", name, got, elapsed.Round(time.Millisecond))
		}
	}
	settles(t, i, behind, idle)
	if after := peak(t, i.command.Process.Pid); after > before+48<<20 {
		t.Errorf("peak resident memory: %d MiB before, %d MiB after", before>>20, after>>20)
	}
}
