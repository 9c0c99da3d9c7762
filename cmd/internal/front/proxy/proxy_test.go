package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/rule"
)

// fastPlane says that the tests run with the fast path, as the proxy does by default. HEADGATE_TEST_DATA_PLANE=standard switches it off. A
// run has one data plane: the tests whose names begin with TestPlanes compare both, whatever plane is chosen.
var fastPlane bool

func TestMain(m *testing.M) {
	fastPlane = os.Getenv("HEADGATE_TEST_DATA_PLANE") != "standard"
	leak.Main(m)
}

// scripted is a store that returns the same decision for everything and records the
// returned receipts.
type scripted struct {
	decision headgate.Decision
	err      error
	returned []headgate.Receipt
}

func (s *scripted) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (s *scripted) Release(headgate.PolicyID) {}

func (s *scripted) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		decisions[i] = s.decision
	}
	return s.err
}

func (s *scripted) Return(_ context.Context, receipts []headgate.Receipt) error {
	s.returned = append(s.returned, receipts...)
	return nil
}

func (s *scripted) ReturnLast(ctx context.Context, receipt *headgate.Receipt) (bool, error) {
	return true, s.Return(ctx, []headgate.Receipt{*receipt})
}

func (s *scripted) Forget(context.Context, []headgate.Op) error { return nil }

// allowed returns a store that allows every request.
func allowed() *scripted {
	return &scripted{decision: headgate.Decision{
		Verdict: headgate.Allow, Reason: headgate.WithinLimit, Limit: 100, Remaining: 99, ResetAfter: time.Second,
	}}
}

func denied(reason headgate.Reason, retry time.Duration) *scripted {
	return &scripted{decision: headgate.Decision{Verdict: headgate.Deny, Reason: reason, Limit: 100, RetryAfter: retry}}
}

// product returns the rule of most tests in this package.
func product(tb testing.TB) guard.Rule {
	tb.Helper()
	key, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		tb.Fatal(err)
	}
	return guard.Rule{
		Rule:     rule.Rule{Name: "product", Match: rule.Match{Path: "/v1/product"}, Key: []rule.Part{key}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
	}
}

// newProxy returns a proxy before upstream whose decisions come from store.
func newProxy(tb testing.TB, store headgate.Store, upstream string, transport http.RoundTripper, change ...func(*Config)) *Proxy {
	tb.Helper()
	rules := []guard.Rule{product(tb)}
	g, err := guard.New(guard.Config{Rules: rules, Store: store})
	if err != nil {
		tb.Fatal(err)
	}
	u, err := url.Parse(upstream)
	if err != nil {
		tb.Fatal(err)
	}
	c := Config{
		Guard: g, Upstream: u, Transport: transport, Traffic: new(report.Traffic), BodyIdle: time.Minute,
		Log: slog.New(slog.DiscardHandler),
	}
	onPlane(&c)
	for _, f := range change {
		f(&c)
	}
	p, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// front is a listening proxy with its own client.
type front struct {
	*Proxy

	url    string
	client *http.Client
}

// serve starts a proxy on a real socket, before a real upstream.
func serve(t *testing.T, store headgate.Store, upstream http.Handler, change ...func(*Config)) *front {
	t.Helper()
	behind := httptest.NewServer(upstream)
	t.Cleanup(behind.Close)
	return serveBefore(t, store, behind.URL, change...)
}

func serveBefore(t *testing.T, store headgate.Store, upstream string, change ...func(*Config)) *front {
	t.Helper()
	transport, err := NewUpstream(UpstreamConfig{URL: parsed(t, upstream), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, store, upstream, transport, change...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(p, ServerConfig{ReadHeader: time.Second, Idle: time.Minute, Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	return &front{Proxy: p, url: "http://" + ln.Addr().String(), client: client}
}

// reply is a response whose body has been read.
type reply struct {
	StatusCode      int
	ProtoMajor      int
	Header, Trailer http.Header
}

func (f *front) do(t *testing.T, req *http.Request) (reply, string) {
	t.Helper()
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.ProtoMajor, resp.Header, resp.Trailer}, string(text)
}

func (f *front) get(t *testing.T, path string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return f.do(t, req)
}

func TestForward(t *testing.T) {
	var got *http.Request
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("X-From", "upstream")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "short and stout")
	}))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/x/..//v1/product?a=1;b&c=%zz", http.NoBody)
	req.Host = "api.example.com"
	req.Header = http.Header{
		"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"other"},
		"Forwarded": {"for=203.0.113.9"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"5"},
	}
	resp, body := f.do(t, req)
	if resp.StatusCode != http.StatusTeapot || body != "short and stout" || resp.Header.Get("X-From") != "upstream" {
		t.Errorf("got response %d %q %v", resp.StatusCode, body, resp.Header)
	}
	if want := `"product";r=99;t=1`; resp.Header.Get("RateLimit") != want {
		t.Errorf("RateLimit = %q, want %q", resp.Header.Get("RateLimit"), want)
	}
	if want := `"product";q=100;w=60`; resp.Header.Get("RateLimit-Policy") != want {
		t.Errorf("RateLimit-Policy = %q, want %q", resp.Header.Get("RateLimit-Policy"), want)
	}
	if got.RequestURI != "/v1/product?a=1;b&c=%zz" || got.Host != "api.example.com" {
		t.Errorf("the upstream got %s of %s", got.RequestURI, got.Host)
	}
	for name, want := range map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "api.example.com",
		"Forwarded": "", "X-Hop": "", "Keep-Alive": "", "Accept-Encoding": "gzip",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("the upstream got %s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if n := f.traffic.Answers(report.Class4xx); n != 1 {
		t.Errorf("%d responses with 4xx were counted, want 1", n)
	}
}

func TestNoRuleNoFields(t *testing.T) {
	f := serve(t, denied(headgate.OverLimit, time.Second), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	resp, _ := f.get(t, "/elsewhere")
	if resp.StatusCode != http.StatusOK || len(resp.Header["Ratelimit"]) > 0 || len(resp.Header["Ratelimit-Policy"]) > 0 {
		t.Errorf("response %d %v, want 200 without rate limit fields", resp.StatusCode, resp.Header)
	}
}

// unavailable returns a store that times out. The rule's fallback denies.
func unavailable() *scripted { return &scripted{err: context.DeadlineExceeded} }

func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		name   string
		store  *scripted
		status int
		retry  string
		kind   string
	}{
		{"over the limit", denied(headgate.OverLimit, 1500*time.Millisecond), 429, "2", "quota-exceeded"},
		{"at once again", denied(headgate.OverLimit, 0), 429, "*", "quota-exceeded"},
		{"never", denied(headgate.Never, 0), 429, "", "quota-exceeded"},
		{"queue full", denied(headgate.QueueFull, time.Second), 429, "1", "quota-exceeded"},
		{"wait too long", denied(headgate.WaitTooLong, time.Minute), 429, "60", "quota-exceeded"},
		{"banned", denied(headgate.Banned, time.Hour), 429, "3600", "abnormal-usage-detected"},
		{"store full", denied(headgate.StoreFull, 0), 503, "*", "temporary-reduced-capacity"},
		{"store unavailable", unavailable(), 503, "*", "temporary-reduced-capacity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := serve(t, c.store, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("a refused request was forwarded")
			}))
			resp, body := f.get(t, "/v1/product")
			retry := resp.Header.Get("Retry-After")
			if resp.StatusCode != c.status || retry != c.retry && (c.retry != "*" || !isSpread(retry)) {
				t.Errorf("status %d, Retry-After %q, want %d, %q", resp.StatusCode, retry, c.status, c.retry)
			}
			if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type = %q, want application/problem+json", got)
			}
			if !strings.HasPrefix(resp.Header.Get("RateLimit"), `"product";r=0`) {
				t.Errorf("RateLimit = %q", resp.Header.Get("RateLimit"))
			}
			var p struct {
				Type     string   `json:"type"`
				Title    string   `json:"title"`
				Detail   string   `json:"detail"`
				Reason   string   `json:"reason"`
				Status   int      `json:"status"`
				Violated []string `json:"violated-policies"`
			}
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatalf("parsing the problem failed: %v: %s", err, body)
			}
			if want := "https://iana.org/assignments/http-problem-types#" + c.kind; p.Type != want || p.Status != c.status || p.Title == "" || p.Detail == "" || !slices.Equal(p.Violated, []string{"product"}) {
				t.Errorf("got unexpected problem %+v", p)
			}
			if want := strings.ReplaceAll(c.name, " ", "_"); p.Reason != want && c.name != "over the limit" && c.name != "at once again" {
				t.Errorf("reason = %q, want %q", p.Reason, want)
			}
		})
	}
}

// guardedBy changes the proxy's rule.
func guardedBy(t *testing.T, store headgate.Store, change func(*guard.Rule)) func(*Config) {
	t.Helper()
	r := product(t)
	change(&r)
	g, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Guard = g }
}

// TestMarks checks that the upstream learns the guard's decision. A client cannot forge
// the marks, and cannot have them dropped on the way.
func TestMarks(t *testing.T) {
	nearly := &scripted{decision: headgate.Decision{Reason: headgate.WithinLimit, Limit: 100, Remaining: 10}}
	for _, c := range []struct {
		name, path string
		store      *scripted
		change     func(*guard.Rule)
		want       http.Header
	}{
		{
			"soft limit", "/v1/product", nearly, func(r *guard.Rule) { r.Soft = 80 },
			http.Header{"Headgate-Warning": {`soft-limit; policy="product"`}},
		},
		{
			"degraded", "/v1/product", denied(headgate.OverLimit, time.Second),
			func(r *guard.Rule) {
				r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Service-Level", Value: "basic"}
			},
			http.Header{"X-Service-Level": {"basic"}},
		},
		{
			"no rule", "/elsewhere", allowed(),
			func(r *guard.Rule) {
				r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Service-Level", Value: "basic"}
			},
			http.Header{"X-Service-Level": nil},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got http.Header
			f := serve(t, c.store, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }), guardedBy(t, c.store, c.change))
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+c.path, http.NoBody)
			req.Header = http.Header{
				"Headgate-Warning": {"forged"}, "X-Service-Level": {"premium"}, "Connection": {"headgate-warning, X-Service-Level"},
			}
			resp, _ := f.do(t, req)
			for name, want := range c.want {
				if !slices.Equal(got[name], want) {
					t.Errorf("the upstream got %s: %q, want %q", name, got[name], want)
				}
			}
			if want := c.want.Get("Headgate-Warning"); resp.Header.Get("Headgate-Warning") != want || got.Get("Headgate-Warning") != want {
				t.Errorf("Headgate-Warning at the client = %q, at the upstream = %q, want %q", resp.Header["Headgate-Warning"], got["Headgate-Warning"], want)
			}
		})
	}
}

func TestRedirect(t *testing.T) {
	store := denied(headgate.OverLimit, time.Second)
	f := serve(t, store, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a refused request was forwarded") }),
		guardedBy(t, store, func(r *guard.Rule) {
			r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "https://queue.example/?from={path}"}
		}))
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, _ := f.get(t, "/v1/product?secret=1")
	if want := "https://queue.example/?from=/v1/product"; resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != want {
		t.Errorf("got status %d, Location %q, want 302, %q", resp.StatusCode, resp.Header.Get("Location"), want)
	}
	if !isSpread(resp.Header.Get("Retry-After")) || resp.Header.Get("RateLimit") == "" {
		t.Errorf("header %v, want the fields of a refusal", resp.Header)
	}
}

// TestUpstreamLimitsToo checks that an upstream's own rate limit fields are kept beside the
// proxy's.
func TestUpstreamLimitsToo(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", `"theirs";r=1;t=2`)
	}))
	resp, _ := f.get(t, "/v1/product")
	if got, want := resp.Header["Ratelimit"], []string{`"theirs";r=1;t=2`, `"product";r=99;t=1`}; !slices.Equal(got, want) {
		t.Errorf("RateLimit = %q, want %q", got, want)
	}
}

func TestAmbiguousPaths(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("an ambiguous request was forwarded")
	}))
	for target, want := range map[string]string{
		`GET /v1%5cproduct HTTP/1.1`:       "400",
		"GET /x/..;/v1/product HTTP/1.1":   "400",
		"CONNECT example.com:443 HTTP/1.1": "405",
		"GET * HTTP/1.1":                   "400",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s\r\nHost: a\r\nConnection: close\r\n\r\n", target)
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 "+want) || strings.Contains(string(answer), "Ratelimit") {
			t.Errorf("%s: got unexpected response %s", target, answer)
		}
	}
}

func TestUpstreamFailures(t *testing.T) {
	closing := http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	refusing := httptest.NewServer(closing)
	refusing.Close()
	for _, c := range []struct {
		name   string
		front  *front
		status int
		kind   report.UpstreamError
	}{
		{"refused", serveBefore(t, allowed(), refusing.URL), 502, report.UpstreamRefused},
		{"reset", serve(t, allowed(), closing), 502, report.UpstreamReset},
		{"timeout", serve(t, allowed(), slow, func(c *Config) {
			c.Transport, _ = NewUpstream(UpstreamConfig{URL: c.Upstream, Timeout: 20 * time.Millisecond})
			onPlane(c)
		}), 504, report.UpstreamTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := c.front.get(t, "/v1/product")
			var p problemShape
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != c.status || resp.StatusCode != c.status {
				t.Errorf("got response %d %s, want %d", resp.StatusCode, body, c.status)
			}
			if n := c.front.traffic.UpstreamFailures(c.kind); n != 1 {
				t.Errorf("%d failures were counted as %s, want 1", n, c.kind)
			}
			if n := c.front.traffic.Answers(report.Class5xx); n != 1 {
				t.Errorf("%d responses with 5xx were counted, want 1", n)
			}
		})
	}
}

type problemShape struct {
	Status int `json:"status"`
}

// TestClientGone checks that a disconnected client does not count as a 5xx response or as an
// upstream failure.
func TestClientGone(t *testing.T) {
	reached := make(chan struct{})
	f := serve(t, allowed(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/v1/product", http.NoBody)
	go func() { <-reached; cancel() }()
	if resp, err := f.client.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("the aborted request got a response")
	}
	eventually(t, "the request to be counted", func() bool { return f.traffic.Answers(report.ClassCanceled) == 1 })
	for _, kind := range report.UpstreamErrors() {
		if n := f.traffic.UpstreamFailures(kind); n != 0 {
			t.Errorf("%d upstream failures were counted as %s, want 0", n, kind)
		}
	}
}

// eventually waits for an effect of another process or goroutine.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("waited 5 s for %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestHTTP2WithoutTLS(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	f.client.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", strings.NewReader("x"))
	resp, body := f.do(t, req)
	if resp.ProtoMajor != 2 || body != "POST x" || resp.Header.Get("RateLimit") == "" {
		t.Errorf("got HTTP/%d %q %v", resp.ProtoMajor, body, resp.Header)
	}
	big := strings.Repeat("0123456789abcdef", 1<<16)
	req, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", strings.NewReader(big))
	if _, body = f.do(t, req); body != "POST "+big {
		t.Errorf("got %d bytes back, want %d", len(body), len(big))
	}
}

func TestTrailersBothWays(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Asked"))
	}))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", io.MultiReader(strings.NewReader("body")))
	req.Trailer = http.Header{"X-Asked": {"42"}}
	resp, body := f.do(t, req)
	if body != "body" || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("got body %q, trailers %v", body, resp.Trailer)
	}
}

// TestEarlyHints checks that informational responses pass without the fields of the final
// response.
func TestEarlyHints(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	}))
	var hints textproto.MIMEHeader
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { hints = h; return nil },
	})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/v1/product", http.NoBody)
	resp, _ := f.do(t, req)
	if hints.Get("Link") == "" || hints.Get("RateLimit") != "" || resp.Header.Get("RateLimit") == "" {
		t.Errorf("got hints %v, final header %v", hints, resp.Header)
	}
}

// TestStreamingAnswer checks that each chunk of a response of unknown length reaches the
// client as soon as it is sent.
func TestStreamingAnswer(t *testing.T) {
	next := make(chan struct{})
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "%d\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/v1/product", http.NoBody)
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("got line %d: %q", i, lines.Text())
		}
		next <- struct{}{}
	}
}

// TestUpgrades checks that WebSocket passes, and that an upgrade to HTTP/2 does not,
// because it would bypass every rule.
func TestUpgrades(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprintf(w, "no upgrade, %d settings", len(r.Header["Http2-Settings"]))
			return
		}
		conn, rw, _ := http.NewResponseController(w).Hijack()
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		rw.Flush()
		_, _ = io.CopyN(conn, rw, 4)
	}))
	for protocol, want := range map[string]string{
		"websocket": "ping", "h2c": "no upgrade, 0 settings", "websocket, h2c": "no upgrade, 0 settings",
	} {
		if got := upgrade(t, f, protocol); got != want {
			t.Errorf("after Upgrade: %s got %q, want %q", protocol, got, want)
		}
	}
}

// upgrade requests an upgrade and returns what comes back, through the upgraded connection
// if there is one.
func upgrade(t *testing.T, f *front, protocol string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/product HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"+
		"Upgrade: %s\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", protocol)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if resp.StatusCode == http.StatusSwitchingProtocols {
		fmt.Fprint(conn, "ping")
		body = r
	}
	got, _ := io.ReadAll(body)
	return string(got)
}

func TestNewRefuses(t *testing.T) {
	for upstream, want := range map[string]string{
		"http://127.0.0.1:9000/base": "write http://127.0.0.1:9000",
		"http://u:p@127.0.0.1:9000":  "write http://127.0.0.1:9000",
		"127.0.0.1":                  "not an address",
		"ftp://127.0.0.1":            "not an address",
	} {
		u, err := url.Parse(upstream)
		if err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(guard.Config{Store: allowed()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(Config{Guard: g, Upstream: u, Transport: NewTransport(0), Traffic: new(report.Traffic), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("upstream %s: %v, want an error that says %q", upstream, err, want)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New accepts an empty Config")
	}
}

// TestBothBodiesAtOnce checks that an upstream may respond while it receives the request.
// No byte of either body is lost.
func TestBothBodiesAtOnce(t *testing.T) {
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}))
	const size = 8 << 20
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/product", io.LimitReader(endless{}, size))
	if _, body := f.do(t, req); len(body) != size {
		t.Errorf("got %d bytes back, want %d", len(body), size)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// isSpread reports whether a Retry-After is that of a refusal whose end is not known.
func isSpread(text string) bool { return text == "1" || text == "2" }
