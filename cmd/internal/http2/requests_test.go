package http2

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	wire "golang.org/x/net/http2"
)

// TestRequests checks what the handler gets.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []string
		body   string
		end    bool // no body
		want   string
	}{
		{"a plain request", []string{"x-a", "1", "x-a", "2", "x-b", "3"}, "", true, `GET / HTTP/2.0 host a length 0 X-A=[1 2] X-B=[3] body ""`},
		{"a query", []string{":path", "/p%20q?x=1"}, "", true, `GET /p%20q?x=1 HTTP/2.0 host a length 0 body ""`},
		{"cookies", []string{"cookie", "a=b", "cookie", "c=d"}, "", true, `GET / HTTP/2.0 host a length 0 Cookie=[a=b; c=d] body ""`},
		{"a body", []string{":method", "POST"}, "hello", false, `POST / HTTP/2.0 host a length -1 body "hello"`},
		{
			"a body of known length",
			[]string{":method", "POST", "content-length", "5"},
			"hello", false,
			`POST / HTTP/2.0 host a length 5 Content-Length=[5] body "hello"`,
		},
		{"no authority", []string{":authority", "", "host", "b"}, "", true, `GET / HTTP/2.0 host b length 0 Host=[b] body ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				saw := ""
				client := connect(t, func(_ http.ResponseWriter, r *http.Request) { saw = describe(r) }, false).hello()
				id := client.open(c.end, c.fields...)
				if !c.end {
					_ = client.WriteData(id, true, []byte(c.body))
				}
				synctest.Wait()
				if saw != c.want {
					t.Errorf("the handler got\n%s\nwant\n%s", saw, c.want)
				}
			})
		})
	}
}

func describe(r *http.Request) string {
	text := fmt.Sprintf("%s %s %s host %s length %d", r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength)
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text += fmt.Sprintf(" %s=%v", name, r.Header[name])
	}
	body, err := io.ReadAll(r.Body)
	if text += fmt.Sprintf(" body %q", body); err != nil {
		text += " " + err.Error()
	}
	return text
}

// TestRefusedRequests checks headers that the handler does not get.
func TestRefusedRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"a long header", []string{"x", strings.Repeat("y", testMaxHeader+fieldsBeyond*fieldOverhead)}, "1: :status=431 content-type=text/html; charset=utf-8 content-length=63\n1: end"},
		{"many trailers", []string{"trailer", strings.Repeat("a,", testMaxHeader/fieldOverhead+fieldsBeyond)}, "1: :status=431 content-type=text/html; charset=utf-8 content-length=63\n1: end"},
		{
			"the header of a connection",
			[]string{"connection", "close"},
			"1: :status=400 content-type=text/plain; charset=utf-8 x-content-type-options=nosniff content-length=51\n1: end",
		},
		{"an upgrade", []string{"upgrade", "h2c"}, "1: :status=400 content-type=text/plain; charset=utf-8 x-content-type-options=nosniff content-length=48\n1: end"},
		{"TE", []string{"te", "gzip"}, "1: :status=400 content-type=text/plain; charset=utf-8 x-content-type-options=nosniff content-length=53\n1: end"},
		{"capitals", []string{"X-A", "1"}, "1: PROTOCOL_ERROR"},
		{"a line end", []string{"x", "a\r\nb: c"}, "1: PROTOCOL_ERROR"},
		{"no path", []string{":path", ""}, "1: PROTOCOL_ERROR"},
		{"no method", []string{":method", ""}, "1: PROTOCOL_ERROR"},
		{"another scheme", []string{":scheme", "ftp"}, "1: PROTOCOL_ERROR"},
		{"a user", []string{":authority", "u@a"}, "1: PROTOCOL_ERROR"},
		{"a path without a slash", []string{":path", "x"}, "1: PROTOCOL_ERROR"},
		{"a pseudo field of answers", []string{":status", "200"}, "1: PROTOCOL_ERROR"},
		{"a late pseudo field", []string{"x", "1", ":protocol", "websocket"}, "1: PROTOCOL_ERROR"},
		{"extended CONNECT", []string{":method", "CONNECT", ":protocol", "websocket"}, "1: PROTOCOL_ERROR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler is called") }, false).hello()
				client.open(true, c.fields...)
				got := strings.Join(client.frames(), "\n")
				if sorted(got) != sorted(c.want) { // The order of fields is not fixed.
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
				client.server.config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
				client.open(true)
				client.want("the next stream", "3: :status=200 content-length=0 end")
			})
		})
	}
}

// sorted sorts the words of a text.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestTrailersOfARequest checks that declared trailers reach the handler behind the body, and others do not.
func TestTrailersOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saw := ""
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) {
			before := fmt.Sprint(r.Trailer)
			_, _ = io.Copy(io.Discard, r.Body)
			saw = before + " " + fmt.Sprint(r.Trailer)
		}, false).hello()
		id := client.open(false, ":method", "POST", "trailer", "x-sum, x-other")
		_ = client.WriteData(id, false, []byte("hello"))
		_ = client.WriteHeaders(wire.HeadersFrameParam{
			StreamID: id, BlockFragment: client.fields("x-sum", "5", "x-unknown", "6"), EndStream: true, EndHeaders: true,
		})
		synctest.Wait()
		if want := "map[X-Other:[] X-Sum:[]] map[X-Other:[] X-Sum:[5]]"; saw != want {
			t.Errorf("the handler got %s, want %s", saw, want)
		}
	})
}

// TestStreamsAreIndependent checks that a stream that is used again has nothing of the request before.
func TestStreamsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saw := ""
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			saw = describe(r)
			w.Header().Set("X-"+r.URL.Path[1:], "1")
			_, _ = io.WriteString(w, r.URL.Path)
		}, false).hello()
		id := client.open(false, ":method", "POST", ":path", "/a", "x-a", "1", "x-a", "2")
		_ = client.WriteData(id, true, []byte("first"))
		client.want("the first", "1: :status=200 x-a=1 content-length=2", "1: end")
		client.open(true, ":path", "/b")
		client.want("the second", "3: :status=200 x-b=1 content-length=2", "3: end")
		if want := `GET /b HTTP/2.0 host a length 0 body ""`; saw != want {
			t.Errorf("the handler got %s, want %s", saw, want)
		}
	})
}
