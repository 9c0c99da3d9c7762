package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

const (
	chunked   = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	trailers  = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A, X-B\r\n\r\n5\r\nhello\r\n0\r\nX-A: 1\r\nX-C: 3\r\n\r\n"
	untilEnd  = "HTTP/1.1 200 OK\r\nX-Name: value\r\n\r\nhello"
	closing   = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
	interims  = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n"
	noContent = "HTTP/1.1 204 No Content\r\n\r\n"
)

// story is an answer of the service, and whether its connection can serve the next request.
type story struct {
	name, method, text string
	reused             bool
}

// stories are sent by a service that waits for the next request afterwards. If the answer is
// incomplete, or ends with its connection, the service closes the connection.
var stories = []story{
	{"a length", "GET", plain, true},
	{"no body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
	{"a header in other letters", "GET", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-NAME:  v \r\nX-Name: w\r\n\r\nhello", true},
	{"no-cache in HTTP/1.0 form", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nPragma: no-cache\r\n\r\n", true},
	{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true},
	{"HEAD of chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true},
	{"no content", "GET", noContent, true},
	{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nEtag: a\r\n\r\n", true},
	{"the service closes", "GET", closing, false},
	{"one of several options is close", "GET", "HTTP/1.1 200 OK\r\nConnection: x, close\r\nContent-Length: 5\r\n\r\nhello", false},
	{"chunks", "GET", chunked, true},
	{"chunks and a trailer", "GET", trailers, true},
	{"chunks and close", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\n" + chunked[len("HTTP/1.1 200 OK\r\n"):], false},
	{"no length", "GET", untilEnd, false},
	{"no length and no body", "GET", "HTTP/1.1 200 OK\r\n\r\n", false},
	{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
	{"HTTP/1.0 that keeps the connection", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", true},
	{"line feeds alone", "GET", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", true},
	{"a folded field", "GET", "HTTP/1.1 200 OK\r\nX-Name: a\r\n b\r\nContent-Length: 5\r\n\r\nhello", true},
	{"two equal lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", true},
	{"interim answers", "GET", interims + plain, true},
	{"interim answers before chunks", "GET", interims + chunked, true},
	{"switching protocols unasked", "GET", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", false},
	{"a status below 100", "GET", "HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", false},
	{"a large header", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Large: " + strings.Repeat("a", 20<<10) + "\r\n\r\nhello", true},
	{"a body that ends early", "GET", plain[:len(plain)-1], false},
	{"a body without its first byte", "GET", plain[:len(plain)-5], false},
	{"chunks that end early", "GET", chunked[:len(chunked)-8], false},
	{"a header that ends early", "GET", plain[:20], false},
	{"no answer", "GET", "", false},
	{"two different lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", false},
	{"an invalid length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", false},
	{"another protocol", "GET", "SSH-2.0-OpenSSH_9.0\r\n", false},
	{"an unknown encoding", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false},
}

// handle answers each request with the story.
func (s story) handle(p *peer) {
	for {
		if _, ok := p.head(); !ok {
			return
		}
		if _, err := p.Write([]byte(s.text)); err != nil || !s.reused {
			return
		}
	}
}

// outcome is what a client sees.
type outcome struct {
	status  int
	length  int64
	header  http.Header
	trailer http.Header
	body    string
	failed  bool
	reading bool // reading the body failed
}

func (s story) request() *client.Request {
	return &client.Request{Method: s.method, Target: "/", Host: "service.example"}
}

// ours is the outcome of Client.Do.
func (s story) ours(t *testing.T, c *client.Client) outcome {
	t.Helper()
	var a client.Answer
	if err := c.Do(t.Context(), s.request(), &a); err != nil {
		return outcome{failed: true}
	}
	defer a.Close()
	body, err := io.ReadAll(&a)
	return outcome{a.Status, a.Length, a.Header.Header(), a.Trailer, string(body), false, err != nil}
}

// theirs is the outcome of net/http's Transport.
func (s story) theirs(t *testing.T, from *service) outcome {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return from.dial(ctx)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), s.method, "http://service.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return outcome{failed: true}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return outcome{status: resp.StatusCode, header: resp.Header}
	}
	body, err := io.ReadAll(resp.Body)
	length := resp.ContentLength
	if s.method == http.MethodHead {
		length = 0
	}
	return outcome{resp.StatusCode, length, resp.Header, resp.Trailer, string(body), false, err != nil}
}

func (o outcome) equal(other outcome) bool {
	same := func(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
	return o.status == other.status && o.length == other.length && o.body == other.body && o.failed == other.failed &&
		o.reading == other.reading && same(o.header, other.header) && same(o.trailer, other.trailer)
}

// splitConn returns only the first bytes from its first reads.
type splitConn struct {
	net.Conn

	first int
}

func (c *splitConn) Read(p []byte) (int, error) {
	if c.first > 0 {
		p = p[:min(len(p), c.first)]
	}
	n, err := c.Conn.Read(p)
	c.first -= n
	return n, err
}

func TestAnswersMeanTheSameAsWithTransport(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			from := serve(t, "tcp", s.handle)
			want := s.theirs(t, from)
			before := from.accepted()
			c := from.client(t, nil)
			for range 2 {
				if got := s.ours(t, c); !got.equal(want) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
			if reused := from.accepted()-before == 1; reused != s.reused {
				t.Errorf("the connection was reused: %v, want %v", reused, s.reused)
			}
			for at := range min(len(s.text), 200) {
				split := from.client(t, func(c *client.Config) {
					c.MaxIdle, c.Dial = 0, func(ctx context.Context) (net.Conn, error) {
						raw, err := from.dial(ctx)
						return &splitConn{raw, at}, err
					}
				})
				if got := s.ours(t, split); !got.equal(want) {
					t.Errorf("split at %d: got  %+v\nwant %+v", at, got, want)
				}
			}
		})
	}
}

func TestInterimAnswersReachTheCaller(t *testing.T) {
	s := serve(t, "tcp", answers(interims+plain))
	c := s.client(t, nil)
	var seen []string
	r := get()
	r.Interim = func(status int, h http.Header) error {
		seen = append(seen, fmt.Sprint(status, h.Get("Link")))
		return nil
	}
	if a := do(t, c, r); a.body != "hello" || a.err != nil {
		t.Errorf("answer %+v", a)
	}
	if want := []string{"100", "103</a>", "103</b>"}; !slices.Equal(seen, want) {
		t.Errorf("interim answers %q, want %q", seen, want)
	}
	refused := errors.New("no more")
	r.Interim = func(int, http.Header) error { return refused }
	if err := c.Do(t.Context(), r, new(client.Answer)); !errors.Is(err, refused) {
		t.Errorf("error %v, want the caller's", err)
	}
	if a := do(t, c, get()); a.body != "hello" || s.accepted() != 2 {
		t.Errorf("%q on connection %d: an aborted exchange must close its connection", a.body, s.accepted())
	}
}

func TestHeaderIsBounded(t *testing.T) {
	flood := func(p *peer) {
		if _, ok := p.head(); !ok {
			return
		}
		for {
			if _, err := p.Write([]byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")); err != nil {
				return
			}
		}
	}
	large := answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Large: " + strings.Repeat("a", 5000) + "\r\n\r\nhello")
	long := answers(strings.Repeat("a", 100<<10))
	for name, handle := range map[string]func(*peer){"a flood of interim answers": flood, "a large header": large, "a long line": long} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, "tcp", handle).client(t, func(c *client.Config) { c.MaxHeader = 4 << 10 })
			err := c.Do(t.Context(), get(), new(client.Answer))
			if err == nil || !strings.Contains(err.Error(), "exceeds 4096 bytes") {
				t.Errorf("error %v, want one about the size", err)
			}
		})
	}
}

func TestInterimAnswersWithAReaderAreNotBoundedTogether(t *testing.T) {
	c := serve(t, "tcp", answers(strings.Repeat(interims, 100)+plain)).client(t, func(c *client.Config) { c.MaxHeader = 1 << 10 })
	seen := 0
	r := get()
	r.Interim = func(int, http.Header) error { seen++; return nil }
	if a := do(t, c, r); a.body != "hello" || seen != 300 {
		t.Errorf("%q after %d interim answers", a.body, seen)
	}
}
