package client_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// onlyReader has no other methods than Read, so that Transport treats it as the proxy's body.
type onlyReader struct{ io.Reader }

// recorder is a service that records the bytes of each request.
func recorder(t *testing.T) (s *service, recorded chan string) {
	t.Helper()
	recorded = make(chan string, 1)
	return serve(t, "tcp", func(p *peer) {
		var b bytes.Buffer
		r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(p.in, &b)))
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			b.WriteString(err.Error())
		}
		recorded <- b.String()
		_, _ = io.WriteString(p, noContent)
	}), recorded
}

// TestRequestsAreWrittenAsByTransport compares the bytes that the service gets.
func TestRequestsAreWrittenAsByTransport(t *testing.T) {
	for _, c := range []struct {
		story, method, host string
		header              http.Header
		length              int64
		body                string
	}{
		{story: "GET", method: "GET", host: "h.example:80"},
		{story: "fields are sorted", method: "GET", host: "h", header: http.Header{"B": {"1", "2"}, "A": {" 3\t"}, "User-Agent": {"x", "y"}}},
		{story: "a name in other letters", method: "GET", host: "h", header: http.Header{"x-a": {"1"}, "X-B": {""}}},
		{
			story: "fields that the request decides", method: "GET", host: "h",
			header: http.Header{"Host": {"x"}, "Content-Length": {"7"}, "Transfer-Encoding": {"x"}, "Trailer": {"x"}},
		},
		{story: "a zone", method: "GET", host: "[fe80::1%eth0]:80"},
		{story: "an invalid host", method: "GET", host: "a b"},
		{story: "letters beyond ASCII in the host", method: "GET", host: "bücher.example:80"},
		{story: "POST without a body", method: "POST", host: "h"},
		{story: "PUT without a body", method: "PUT", host: "h"},
		{story: "PATCH without a body", method: "PATCH", host: "h"},
		{story: "DELETE without a body", method: "DELETE", host: "h"},
		{story: "a body", method: "POST", host: "h", length: 5, body: "hello"},
		{story: "GET with a body", method: "GET", host: "h", length: 5, body: "hello"},
		{story: "chunks", method: "POST", host: "h", length: -1, body: "hello"},
		{story: "chunks without a byte", method: "POST", host: "h", length: -1},
		{story: "a large body", method: "POST", host: "h", length: 100 << 10, body: strings.Repeat("a", 100<<10)},
		{story: "a large header", method: "GET", host: "h", header: http.Header{"A": {strings.Repeat("a", 100<<10)}}},
	} {
		t.Run(c.story, func(t *testing.T) {
			if c.header == nil {
				c.header = http.Header{}
			}
			if c.header["User-Agent"] == nil {
				c.header["User-Agent"] = []string{""} // else Transport adds its own
			}
			s, recorded := recorder(t)
			r := &client.Request{Method: c.method, Target: "/a?b=c", Host: c.host, Header: list(c.header), Length: c.length}
			theirs, err := http.NewRequestWithContext(t.Context(), c.method, "http://h/a?b=c", nil)
			if err != nil {
				t.Fatal(err)
			}
			theirs.Host, theirs.Header, theirs.ContentLength = c.host, c.header, c.length
			if c.length != 0 {
				r.Body = onlyReader{strings.NewReader(c.body)}
				theirs.Body = io.NopCloser(onlyReader{strings.NewReader(c.body)})
			}
			do(t, s.client(t, nil), r)
			got := <-recorded
			transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return s.dial(ctx)
			}}
			resp, err := transport.RoundTrip(theirs)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if want := <-recorded; got != want {
				t.Errorf("got\n%.300s\nwant\n%.300s", got, want)
			}
		})
	}
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	c := client.New(client.Config{Dial: func(context.Context) (net.Conn, error) {
		t.Error("the client connects")
		return nil, io.EOF
	}})
	for story, change := range map[string]func(r *client.Request){
		"a blank in the method":         func(r *client.Request) { r.Method = "GET /" },
		"no method":                     func(r *client.Request) { r.Method = "" },
		"a blank in the target":         func(r *client.Request) { r.Target = "/ HTTP/1.1" },
		"a line feed in the target":     func(r *client.Request) { r.Target = "/\n" },
		"no target":                     func(r *client.Request) { r.Target = "" },
		"a line feed in a value":        func(r *client.Request) { r.Header = list(http.Header{"A": {"b\nC: d"}}) },
		"a line feed in the User-Agent": func(r *client.Request) { r.Header = list(http.Header{"User-Agent": {"b\nC: d"}}) },
		"a colon in a name":             func(r *client.Request) { r.Header = list(http.Header{"A:": {"b"}}) },
		"no name":                       func(r *client.Request) { r.Header = list(http.Header{"": {"b"}}) },
	} {
		r := get()
		change(r)
		if err := c.Do(t.Context(), r, new(client.Answer)); err == nil {
			t.Errorf("%s: no error", story)
		}
	}
}
