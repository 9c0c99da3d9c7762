package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/wallclock"
)

// hoarder is an HTTP/2 client whose streams have no window, so that no response with a body
// can be sent to its end.
type hoarder struct {
	net.Conn

	framer *wire.Framer
	next   uint32
}

// transport is one of two ways to HTTP/2: by prior knowledge without TLS, or by ALPN.
type transport struct {
	name     string
	served   *tls.Config // of the server; nil without TLS
	trusting *tls.Config // of its clients; nil without TLS
}

// transports returns both transports.
func transports(t *testing.T) []transport {
	t.Helper()
	served, trusting := certificate(t)
	return []transport{{name: "h2c"}, {"TLS", served, trusting}}
}

// dial connects an HTTP/2 client.
func (s transport) dial(t *testing.T, at string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if s.trusting == nil {
		return conn
	}
	config := s.trusting.Clone()
	config.NextProtos, config.ServerName = []string{"h2"}, "example.com"
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Fatalf("the server chooses %q, want h2", got)
	}
	return secure
}

// url returns the address of a page.
func (s transport) url(at string) string {
	if s.served != nil {
		return "https://" + at + "/v1/product"
	}
	return "http://" + at + "/v1/product"
}

// hoard connects a hoarder. The client reads frames unless deaf is true.
func (s transport) hoard(t *testing.T, at string, deaf bool) *hoarder {
	t.Helper()
	conn := s.dial(t, at)
	h := &hoarder{Conn: conn, framer: wire.NewFramer(conn, conn), next: 1}
	_, _ = io.WriteString(conn, wire.ClientPreface)
	_ = h.framer.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 0})
	if !deaf {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
	return h
}

// open opens n streams.
func (h *hoarder) open(n int, more ...hpack.HeaderField) {
	for range n {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for _, f := range append([]hpack.HeaderField{
			{Name: ":method", Value: "GET"},
			{Name: ":scheme", Value: "http"},
			{Name: ":authority", Value: "a"},
			{Name: ":path", Value: "/v1/product"},
		}, more...) {
			_ = encoder.WriteField(f)
		}
		_ = h.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: h.next, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		h.next += 2
	}
}

// TestStreamsWithoutWindow checks streams whose responses are not read. The streams stay in
// flight until their last byte. The server evicts them for clients that read, and ends them
// within the body bound.
func TestStreamsWithoutWindow(t *testing.T) { //nolint:tparallel // Its bounds are for a machine without other tests.
	for _, by := range transports(t) {
		for name, store := range map[string]*scripted{"served": allowed(), "refused by a rule": denied(0, time.Second)} {
			t.Run(by.name+", "+name, func(t *testing.T) {
				t.Parallel()
				streamsWithoutWindow(t, by, store)
			})
		}
	}
}

func streamsWithoutWindow(t *testing.T, by transport, store *scripted) {
	t.Helper()
	const idle, bound = 3 * time.Second, 64
	p := beforeHandler(t, http.HandlerFunc(fine), func(c *Config) {
		c.BodyIdle = idle
		c.Guard = newProxy(t, store, "http://a", http.DefaultTransport).guard
	})
	s, at := start(t, p, nil, ServerConfig{MaxRequests: bound, TLS: by.served})
	most := bound - s.places.kept() // places that one client can use
	by.hoard(t, at, false).open(int(most))
	eventually(t, "the responses to be in flight", func() bool { return p.traffic.InFlight.Load() == most })
	for range 3 {
		by.hoard(t, at, false).open(bound)
	}
	innocent := httpClient(t, by.trusting, http1Only)
	request := func() int {
		resp, err := innocent.Get(by.url(at))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	eventually(t, "the streams to wait long enough for eviction", func() bool {
		before := answers(p)
		<-time.After(2 * unread)
		return answers(p) == before
	})
	for n := range 20 {
		if got := request(); got == http.StatusServiceUnavailable {
			t.Errorf("request %d of the well-behaved client got status %d", n, got)
		}
	}
	s.places.mu.Lock()
	used, refused, leaving := s.places.used, s.places.refused, s.places.leaving
	s.places.mu.Unlock()
	if used > bound || refused > s.places.mostRefused()+s.places.reserve() || leaving > s.places.mostLeaving()+s.places.reserve()+maxStreams {
		t.Errorf("%d places used, %d refused, %d leaving, with a bound of %d", used, refused, leaving, bound)
	}
	began := time.Now()
	eventually(t, "all places to be released", func() bool { return p.traffic.InFlight.Load() == 0 })
	if elapsed := time.Since(began); elapsed > idle+5*time.Second {
		t.Errorf("releasing the places took %v", elapsed)
	}
	eventually(t, "the goroutines of the streams to end", func() bool { return streamGoroutines() == 0 })
}

// streamGoroutines counts the goroutines of HTTP/2 streams in this process: the handlers,
// and those that wait until a stream is closed.
func streamGoroutines() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte(").runHandler(")) + bytes.Count(stacks, []byte("(*Server).handled.func"))
}

// answers returns the number of all responses.
func answers(p *Proxy) (n uint64) {
	for _, class := range report.CodeClasses() {
		n += p.traffic.Answers(class)
	}
	return n
}

// TestTooManyRequests checks that a request beyond the bound gets a 503 without a body,
// while the service has not answered the requests in flight.
func TestTooManyRequests(t *testing.T) {
	for name, protocols := range map[string]func(*http.Protocols){"HTTP/1.1": http1Only, "HTTP/2": http2Only} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			p := beforeHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
			_, at := start(t, p, nil, ServerConfig{MaxRequests: 2})
			busy := httpClient(t, nil, protocols)
			answered := make(chan int, 2)
			for range 2 {
				go func() {
					resp, err := busy.Get("http://" + at + "/v1/product")
					if err != nil {
						answered <- 0
						return
					}
					resp.Body.Close()
					answered <- resp.StatusCode
				}()
			}
			eventually(t, "two requests to be in flight", func() bool { return p.traffic.InFlight.Load() == 2 })
			resp, err := busy.Post("http://"+at+"/v1/product", "text/plain", bytes.NewReader(make([]byte, 1<<20)))
			if err == nil {
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusServiceUnavailable || len(body) > 0 || !isSpread(resp.Header.Get("Retry-After")) {
					t.Errorf("the third request got status %d, %q, %v", resp.StatusCode, body, resp.Header)
				}
			} else if name != "HTTP/1.1" { // A TCP reset may interrupt a long body.
				t.Error(err)
			}
			close(release)
			for range 2 {
				if got := <-answered; got != http.StatusOK {
					t.Errorf("one of the first two requests got status %d", got)
				}
			}
			eventually(t, "all requests to end", func() bool { return p.traffic.InFlight.Load() == 0 })
			if got := p.traffic.Answers(report.Class5xx); got != 1 {
				t.Errorf("%d responses with 5xx, want 1", got)
			}
		})
	}
}

func http2Only(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }

// TestDeafClientThatPings checks a client that reads nothing from its socket. The proxy
// stops reading from it, so that queued replies are bounded, and then disconnects it.
func TestDeafClientThatPings(t *testing.T) { //nolint:tparallel // Its bounds are for a machine without other tests.
	const idle = 2 * time.Second
	for _, by := range transports(t) {
		t.Run(by.name, func(t *testing.T) {
			t.Parallel()
			p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 16<<20)) }),
				func(c *Config) { c.BodyIdle = idle })
			_, at := start(t, p, nil, ServerConfig{TLS: by.served})
			h := by.hoard(t, at, true)
			_ = h.framer.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 30})
			_ = h.framer.WriteWindowUpdate(0, 1<<30)
			h.open(1)
			_ = h.SetWriteDeadline(time.Now().Add(30 * time.Second))
			for pings := 0; ; pings++ {
				if err := h.framer.WritePing(false, [8]byte{1}); err != nil {
					t.Logf("disconnected after %d pings: %v", pings, err)
					break
				}
			}
			eventually(t, "the response to end", func() bool { return p.traffic.InFlight.Load() == 0 })
		})
	}
}

// stuck is a connection whose writes block until their deadline.
type stuck struct {
	net.Conn

	writes int
}

func (s *stuck) Write([]byte) (int, error) {
	s.writes++
	return 0, os.ErrDeadlineExceeded
}

// TestWriteAfterAFailedOne checks that a write after a failed write fails at once. TLS
// sends an alert before it closes a connection.
func TestWriteAfterAFailedOne(t *testing.T) {
	s := NewServer(newProxy(t, allowed(), "http://a", http.DefaultTransport), ServerConfig{Log: slog.New(slog.DiscardHandler)})
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	at := &stuck{Conn: server}
	c := &clientConn{Conn: at, server: s}
	for n := range 2 {
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || at.writes != 1 {
			t.Errorf("write %d returned %v after %d writes to the socket, want a timeout after 1", n, err, at.writes)
		}
	}
}

// TestWeight checks that a request with a large header takes more than one place.
func TestWeight(t *testing.T) {
	for fields, want := range map[int]int64{0: 1, 10: 1, 110: 1 + 110*(fieldOverhead+valueOverhead+8)/fieldsOfPlace} {
		r := &http.Request{Header: make(http.Header)}
		for n := range fields {
			r.Header[fmt.Sprintf("X-%04d", n)] = []string{"v2"}
		}
		if got := weigh(r, list(r.Header)); got != want {
			t.Errorf("a request with %d fields takes %d places, want %d", fields, got, want)
		}
	}
	r := &http.Request{Trailer: make(http.Header)}
	const names = 500
	for n := range names {
		r.Trailer[fmt.Sprintf("X-%04d", n)] = nil
	}
	if got, want := weigh(r, list(nil)), int64(1+names*(fieldOverhead+6)/fieldsOfPlace); got != want || got == 1 {
		t.Errorf("a request with %d names of trailers takes %d places, want %d", names, got, want)
	}
	now := time.Now()
	p := newPlaces(4, now)
	big := p.take(nil, 100, now)
	if big == nil || big.refused || p.used != 4 {
		t.Fatalf("a request larger than the bound took %+v", big)
	}
	if second := p.take(nil, 1, now); second == nil || !second.refused {
		t.Errorf("while it was in flight, another request took %+v", second)
	}
}

// TestBrokenOffIsNoAnswer checks that a request aborted at shutdown gets no response.
func TestBrokenOffIsNoAnswer(t *testing.T) {
	reached := make(chan struct{})
	p := beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(reached); <-r.Context().Done() }))
	s, at := start(t, p, nil, ServerConfig{})
	go func() { <-reached; s.cancel() }()
	if got := talk(t, at, "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\n"); got != "" {
		t.Errorf("the client got the response %q", got)
	}
}

// TestPlaceForAClientThatHasNone checks that a client without a request is served while
// busy clients use all other places for eviction and refusal.
func TestPlaceForAClientThatHasNone(t *testing.T) {
	now := time.Now()
	p := newPlaces(1024, now)
	deaf := make([]*clientConn, 16)
	request := func(c *clientConn) *place {
		at := p.take(c, 1, now)
		if at != nil && !at.refused {
			at.startWait(now)
		}
		return at
	}
	for i := range deaf {
		deaf[i] = &clientConn{Conn: new(net.TCPConn)}
		for range 64 {
			request(deaf[i])
		}
	}
	now = now.Add(2 * unread)
	for i := 0; request(deaf[15-i%8]) != nil; i++ {
		if i > 10*1024 {
			t.Fatal("busy clients are never refused")
		}
	}
	if p.leaving == 0 || p.refused == 0 {
		t.Fatalf("%d requests leave and %d are refused", p.leaving, p.refused)
	}
	if at := request(&clientConn{Conn: new(net.TCPConn)}); at == nil || at.refused {
		t.Errorf("a client without a place got %+v", at)
	}
}

// TestPlacesKeptForNewcomers checks that a thirty-second of the places is reserved for
// clients without a place.
func TestPlacesKeptForNewcomers(t *testing.T) {
	busy, now := &clientConn{Conn: new(net.TCPConn)}, time.Now()
	p := newPlaces(64, now)
	for range 62 {
		if at := p.take(busy, 1, now); at == nil || at.refused {
			t.Fatal("a request is refused while places are free")
		}
	}
	if at := p.take(busy, 1, now); at == nil || !at.refused {
		t.Error("a client with places got one of the reserved places")
	}
	for range 2 {
		if at := p.take(&clientConn{Conn: new(net.TCPConn)}, 1, now); at == nil || at.refused {
			t.Error("a client without a place was refused")
		}
	}
	if at := p.take(&clientConn{Conn: new(net.TCPConn)}, 1, now); at == nil || !at.refused || p.used != p.bound {
		t.Errorf("%d places are used, want %d", p.used, p.bound)
	}
}

// TestEvictionAfterTheClockIsSet checks that the request that waits longest gives way, whatever the wall clock says.
func TestEvictionAfterTheClockIsSet(t *testing.T) {
	for _, change := range []time.Duration{-time.Hour, time.Hour} {
		start := time.Now()
		p := newPlaces(2, start)
		oldest := p.take(nil, 1, start)
		oldest.startWait(start)
		p.take(nil, 1, start).startWait(wallclock.Set(start.Add(unread/2), change))
		if at := p.take(nil, 1, wallclock.Set(start.Add(unread-1), change)); !at.refused {
			t.Errorf("the clock was set by %v: a request gave way before %v", change, unread)
		}
		at := p.take(nil, 1, wallclock.Set(start.Add(2*unread), change))
		if at == nil || at.refused || oldest.since.Load() != gaveWay {
			t.Errorf("the clock was set by %v: the oldest request did not give way to %+v", change, at)
		}
	}
}

// TestLateBodyGivesWay checks that a client that does not send its body gives way to a new connection at the bound, whether its
// request is forwarded or refused.
func TestLateBodyGivesWay(t *testing.T) {
	reached := make(chan struct{}, 1)
	t.Run("forwarded", func(t *testing.T) {
		givesWay(t, reached, "200", beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				reached <- struct{}{}
				_, _ = io.Copy(io.Discard, r.Body)
				return
			}
			fine(w, r)
		})))
	})
	t.Run("refused", func(t *testing.T) {
		refusing := announced{denied(headgate.OverLimit, time.Minute), reached}
		givesWay(t, reached, "429", newProxy(t, refusing, "http://127.0.0.1:1", http.DefaultTransport, func(c *Config) { c.BodyIdle = time.Minute }))
	})
}

// announced is a store that says when it decides.
type announced struct {
	*scripted

	decides chan<- struct{}
}

func (a announced) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	select {
	case a.decides <- struct{}{}:
	default: // The test waits for the first decision only.
	}
	return a.scripted.Apply(ctx, ops, decisions)
}

// givesWay sends a request without its body to a proxy with one connection, and then another request, which must have the status.
func givesWay(t *testing.T, reached chan struct{}, status string, p *Proxy) {
	t.Helper()
	_, at := start(t, p, opened(t, listen.Config{Address: "127.0.0.1:0", MaxConnections: 1}), ServerConfig{})
	late, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := io.WriteString(late, "POST /v1/product HTTP/1.1\r\nHost: a\r\nX-Client-Id: a\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	<-reached
	if got := talk(t, at, "GET /v1/product HTTP/1.1\r\nHost: a\r\nX-Client-Id: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+status) {
		t.Errorf("a new client got %q", got)
	}
	_ = late.SetReadDeadline(time.Now().Add(10 * time.Second))
	if answer, err := io.ReadAll(late); errors.Is(err, os.ErrDeadlineExceeded) || strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Errorf("the client without a body got %q, %v", answer, err)
	}
}

// TestPlacesAllocateNothing checks that taking and releasing a place allocates nothing.
func TestPlacesAllocateNothing(t *testing.T) {
	now := time.Now()
	p := newPlaces(4, now)
	r, l := new(http.Request), list(http.Header{"A": {"b"}})
	if got := testing.AllocsPerRun(1000, func() { p.release(p.take(nil, weigh(r, l), now)) }); got > 0 {
		t.Errorf("take and release need %v allocations, want 0", got)
	}
}
