package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// logged is a line of the access log in parsed form.
type logged struct {
	Time             time.Time `json:"time"`
	RemoteIP         string    `json:"remote_ip"`
	RequestID        string    `json:"request_id"`
	Method           string    `json:"method"`
	Host             string    `json:"host"`
	URI              string    `json:"uri"`
	Proto            string    `json:"proto"`
	Status           int       `json:"status"`
	Bytes            int       `json:"bytes"`
	Duration         float64   `json:"duration"`
	UserAgent        string    `json:"user_agent"`
	Referer          string    `json:"referer"`
	UpstreamStatus   int       `json:"upstream_status"`
	UpstreamDuration float64   `json:"upstream_duration"`
	Verdict          string    `json:"verdict"`
	Reason           string    `json:"reason"`
	Rule             string    `json:"rule"`
	TLS              string    `json:"tls"`
	Aborted          bool      `json:"aborted"`
}

// logging serves p with an access log, and returns a function that reads the lines so far.
func logging(t *testing.T, p *Proxy, c ServerConfig) (at string, lines func() []logged) {
	t.Helper()
	out := new(logs.Text)
	access, err := accesslog.Open(accesslog.Config{Output: out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = access.Close() })
	c.Access, c.RequestID = access, "X-Request-Id"
	_, at = start(t, p, nil, c)
	return at, func() []logged {
		var all []logged
		for line := range strings.Lines(out.String()) {
			var l logged
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("parsing the line failed: %v: %s", err, line)
			}
			all = append(all, l)
		}
		return all
	}
}

// last waits for the lines of n requests and returns the last line.
func last(t *testing.T, n int, lines func() []logged) logged {
	t.Helper()
	eventually(t, "the access log", func() bool { return len(lines()) >= n })
	return lines()[n-1]
}

func TestAccessLog(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/aborted":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/upgraded":
			conn, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n")
			conn.Close()
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "short and stout")
		}
	}))
	defer upstream.Close()
	const gone = "http://127.0.0.1:1" // No server listens on this port. A port that was free could be reused soon.
	served, trusting := certificate(t)
	allow, deny := allowed(), denied(headgate.OverLimit, time.Second)
	for _, c := range []struct {
		name, at, path string
		store          *scripted
		tls            bool
		upgrade        string
		want           logged
	}{
		{
			"answered", upstream.URL, "/v1/product?q=a%20b", allow, false, "",
			logged{Status: 418, Bytes: 15, UpstreamStatus: 418, Verdict: "allow", Reason: "within_limit", Rule: "product", URI: "/v1/product?q=a%20b"},
		},
		{
			"without a rule, over TLS", upstream.URL, "/x/..//y", allow, true, "",
			logged{Status: 418, Bytes: 15, UpstreamStatus: 418, Verdict: "allow", TLS: "TLS 1.3", URI: "/x/..//y"},
		},
		{
			"refused", upstream.URL, "/v1/product", deny, false, "",
			logged{Status: 429, Verdict: "deny", Reason: "over_limit", Rule: "product", URI: "/v1/product"},
		},
		{"ambiguous", upstream.URL, "/..;/x", allow, false, "", logged{Status: 400, URI: "/..;/x"}},
		{
			"upstream gone", gone, "/v1/product", allow, false, "",
			logged{Status: 502, Verdict: "allow", Reason: "within_limit", Rule: "product", URI: "/v1/product"},
		},
		{
			"aborted", upstream.URL, "/aborted", allow, false, "",
			logged{Status: 200, Bytes: 4, UpstreamStatus: 200, Verdict: "allow", URI: "/aborted", Aborted: true},
		},
		{
			"upgraded", upstream.URL, "/upgraded", allow, false, "foo",
			logged{Status: 101, UpstreamStatus: 101, Verdict: "allow", URI: "/upgraded"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := NewUpstream(UpstreamConfig{URL: parsed(t, c.at)})
			if err != nil {
				t.Fatal(err)
			}
			defer u.CloseIdleConnections()
			scheme, config := "http://", ServerConfig{}
			if c.tls {
				scheme, config.TLS = "https://", served
			}
			at, lines := logging(t, newProxy(t, c.store, c.at, u), config)
			began := time.Now()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+at+c.path, http.NoBody)
			req.Host = "api.example.com"
			req.Header = http.Header{"User-Agent": {"a \"quoted\" agent"}, "Referer": {"https://example.com/"}}
			if c.upgrade != "" {
				req.Header["Connection"], req.Header["Upgrade"] = []string{"Upgrade"}, []string{c.upgrade}
			}
			var id string
			if resp, err := httpClient(t, trusting, http1Only).Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				id = resp.Header.Get("X-Request-Id")
			}
			got := last(t, 1, lines)
			if c.want.Aborted {
				id = got.RequestID // The client may have received no id.
			}
			if got.RequestID != id || !validRequestID(id) || got.Time.Before(began.Truncate(time.Microsecond)) || got.Duration <= 0 {
				t.Errorf("id %q, want %q; started at %v, want not before %v; took %v", got.RequestID, id, got.Time, began, got.Duration)
			}
			// A request that reached the upstream took some time.
			if reached := got.UpstreamDuration > 0; reached != (c.want.UpstreamStatus != 0 || c.want.Status == 502) || got.UpstreamDuration > got.Duration {
				t.Errorf("upstream duration %v does not fit the total duration %v", got.UpstreamDuration, got.Duration)
			}
			if c.want.Status == 429 || c.want.Status == 400 || c.want.Status == 502 {
				c.want.Bytes = got.Bytes // Another test checks the length of the problem document.
			}
			c.want.Time, c.want.RequestID, c.want.Duration, c.want.UpstreamDuration = got.Time, id, got.Duration, got.UpstreamDuration
			c.want.RemoteIP, c.want.Method, c.want.Host, c.want.Proto = "127.0.0.1", "GET", "api.example.com", "HTTP/1.1"
			c.want.UserAgent, c.want.Referer = "a \"quoted\" agent", "https://example.com/"
			if got != c.want {
				t.Errorf("the log line is\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// TestAccessLogOfClientGone checks that a disconnected client has its own status in the
// access log.
func TestAccessLogOfClientGone(t *testing.T) {
	reached := make(chan struct{})
	at, lines := logging(t, beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})), ServerConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v1/product", http.NoBody)
	if resp, err := httpClient(t, nil, http1Only).Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("the aborted request got a response")
	}
	if got := last(t, 1, lines); got.Status != statusClientGone || got.UpstreamStatus != 0 {
		t.Errorf("got log line %+v, want status 499", got)
	}
}

// TestIdentityOfRequests checks that the client, the upstream and the log get the same
// request id. Only a trusted peer may set the id or name the client behind it.
func TestIdentityOfRequests(t *testing.T) {
	var got http.Header
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("X-Request-Id", "the upstream's own")
	}))
	defer upstream.Close()
	u, err := NewUpstream(UpstreamConfig{URL: parsed(t, upstream.URL)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.CloseIdleConnections()
	for _, trusted := range []bool{true, false} {
		identity := &rule.Identity{}
		if trusted {
			identity.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		g, err := guard.New(guard.Config{Rules: []guard.Rule{product(t)}, Store: allowed(), Identity: identity})
		if err != nil {
			t.Fatal(err)
		}
		at, lines := logging(t, newProxy(t, allowed(), upstream.URL, u, func(c *Config) { c.Guard = g }), ServerConfig{Trusts: identity.Trusts})
		f := &front{url: "http://" + at, client: httpClient(t, nil, http1Only)}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/v1/product", http.NoBody)
		req.Header = http.Header{
			"X-Request-Id": {"chosen"}, "Connection": {"x-request-id, x-forwarded-for"},
			"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}, "Forwarded": {"for=203.0.113.9"},
		}
		resp, _ := f.do(t, req)
		id := got.Get("X-Request-Id")
		if (id == "chosen") != trusted || !validRequestID(id) {
			t.Errorf("trusted %v: the upstream got the id %q", trusted, id)
		}
		if all := resp.Header["X-Request-Id"]; len(all) != 1 || all[0] != id {
			t.Errorf("trusted %v: the client got the ids %q, want %q", trusted, all, id)
		}
		if line := last(t, 1, lines); line.RequestID != id {
			t.Errorf("trusted %v: the log has %q, want %q", trusted, line.RequestID, id)
		}
		for name, want := range map[string]string{
			"X-Forwarded-For":   map[bool]string{true: "203.0.113.9, 127.0.0.1", false: "127.0.0.1"}[trusted],
			"X-Forwarded-Proto": map[bool]string{true: "https", false: "http"}[trusted], "Forwarded": "",
		} {
			if got.Get(name) != want {
				t.Errorf("trusted %v: the upstream got %s: %q, want %q", trusted, name, got.Get(name), want)
			}
		}
	}
}

// TestEntryOfBareWriter checks a ResponseWriter without optional methods. The request is
// served, and the entry reports deadlines as unsupported.
func TestEntryOfBareWriter(t *testing.T) {
	s := NewServer(beforeHandler(t, http.HandlerFunc(fine)), ServerConfig{Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	e := s.enter(w, r, list(r.Header), time.Now())
	defer s.leave(e, true)
	if entryOf(&exchange{ResponseWriter: e}) != e || entryOf(w) != nil {
		t.Error("entryOf does not find the entry of a wrapped writer")
	}
	_, _, hijacked := e.Hijack()
	for _, err := range []error{e.SetReadDeadline(time.Time{}), e.SetWriteDeadline(time.Time{}), e.EnableFullDuplex(), hijacked} {
		if !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("an optional method of a bare writer: got error %v, want ErrNotSupported", err)
		}
	}
	if _, err := e.Write([]byte("x")); err != nil || w.Code != http.StatusOK || e.line.Bytes != 1 {
		t.Errorf("got status %d, %d bytes: %v", w.Code, e.line.Bytes, err)
	}
	entryOf(w).decided(nil, nil) // entryOf is nil, and decided must accept that.
	entryOf(w).forwarded()
	entryOf(w).unanswered()
}

// TestEntryAllocations checks that the log line needs no allocation, and a new id two.
func TestEntryAllocations(t *testing.T) {
	access, err := accesslog.Open(accesslog.Config{Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer access.Close()
	w := silent{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
	l := list(r.Header)
	for id, most := range map[string]float64{"": 0, "X-Request-Id": 2} {
		s := NewServer(beforeHandler(t, http.HandlerFunc(fine)), ServerConfig{Access: access, RequestID: id, Log: slog.New(slog.DiscardHandler)})
		n := testing.AllocsPerRun(1000, func() {
			e := s.enter(w, r, l, time.Now())
			e.forwarded()
			e.WriteHeader(http.StatusOK)
			s.leave(e, true)
		})
		if n > most && !race.On {
			t.Errorf("with id %q an entry needs %v allocations, want %v", id, n, most)
		}
	}
}

// silent is a writer that discards everything.
type silent http.Header

func (s silent) Header() http.Header         { return http.Header(s) }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}

// TestHalfOpenConnection checks that a half-closed connection ends in time. A connection
// lost on the network must also end.
func TestHalfOpenConnection(t *testing.T) {
	at, _ := logging(t, beforeHandler(t, http.HandlerFunc(fine)), ServerConfig{ReadHeader: 100 * time.Millisecond, Idle: 100 * time.Millisecond})
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\n")
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("a half-closed connection ended with %v", err)
	}
}
