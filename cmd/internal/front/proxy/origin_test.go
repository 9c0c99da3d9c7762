package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/store/memory"
)

// origins lists what a proxy has counted: the answers by origin and class, and the number of service times and request times.
func origins(t *report.Traffic) string {
	var all []string
	for _, from := range report.Origins() {
		for _, class := range report.CodeClasses() {
			if n := t.AnswersFrom(from, class); n > 0 {
				all = append(all, fmt.Sprint(n, " ", class, " of ", from))
			}
		}
	}
	return strings.Join(append(all, fmt.Sprint(durations(&t.ServiceTime), " service, ", durations(&t.RequestTime), " request")), ", ")
}

// troubled is a service with the answers and faults that its paths name. It sends to hangs for each request that hangs.
func troubled(hangs chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; path {
		case "/429":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/500":
			http.Error(w, "broken", http.StatusInternalServerError)
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/close":
			panic(http.ErrAbortHandler)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("begun"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/hang":
			hangs <- struct{}{}
			<-r.Context().Done()
		case "/upgrade":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
		default:
			_, _ = io.Copy(w, r.Body)
		}
	})
}

// limitedToOne returns a guard that allows each client one request to /v1/product in an hour.
func limitedToOne(t *testing.T) *guard.Guard {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	one := product(t)
	one.Policies = []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}}
	g, err := guard.New(guard.Config{Rules: []guard.Rule{one}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// originSetup is a proxy of one data plane before troubled, and its client.
type originSetup struct {
	proxy  *Proxy
	at     string
	client *http.Client
	hangs  chan struct{}
}

func newOriginSetup(t *testing.T, fast bool, protocol func(*http.Protocols), c UpstreamConfig, change ...func(*Config)) *originSetup {
	t.Helper()
	o := &originSetup{hangs: make(chan struct{}, 1), client: httpClient(t, nil, protocol)}
	behind := httptest.NewServer(troubled(o.hangs))
	behind.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(behind.Close)
	c.URL = parsed(t, behind.URL)
	guarded := func(to *Config) { to.Guard = limitedToOne(t) }
	o.proxy = before(t, c, append([]func(*Config){onThePlane(fast), guarded}, change...)...)
	_, o.at = start(t, o.proxy, nil, ServerConfig{})
	return o
}

// ask sends a request and reads the answer, whose body may break off.
func (o *originSetup) ask(ctx context.Context, method, path string) error {
	body := io.Reader(http.NoBody)
	if method == http.MethodPost {
		body = strings.NewReader("hello")
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+o.at+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("X-Client-Id", "a")
	answer, err := o.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Body.Close()
}

// expect waits until a number of requests have ended, and compares the counts.
func (o *originSetup) expect(t *testing.T, want string) {
	t.Helper()
	_, requests, _ := strings.Cut(want, "service, ")
	eventually(t, requests+" request times", func() bool {
		return strings.HasSuffix(origins(o.proxy.traffic), " "+requests) && o.proxy.traffic.InFlight.Load() == 0
	})
	if got := origins(o.proxy.traffic); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// onPlanesAndProtocols runs a test on both data planes with both protocols.
func onPlanesAndProtocols(t *testing.T, run func(t *testing.T, fast bool, protocol func(*http.Protocols))) {
	t.Helper()
	unencrypted := func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }
	for _, fast := range []bool{true, false} {
		for name, protocol := range map[string]func(*http.Protocols){"HTTP 1": http1Only, "HTTP 2": unencrypted} {
			t.Run(fmt.Sprintf("fast %v, %s", fast, name), func(t *testing.T) {
				t.Parallel()
				run(t, fast, protocol)
			})
		}
	}
}

// TestPlanesOrigins sends requests through real proxies to a service that answers, refuses, fails and closes. It checks which side
// is counted for each answer, and that each request counts once.
func TestPlanesOrigins(t *testing.T) {
	t.Parallel()
	onPlanesAndProtocols(t, func(t *testing.T, fast bool, protocol func(*http.Protocols)) {
		t.Helper()
		for requests, want := range map[string]string{
			"GET /":            "1 2xx of service, 1 service, 1 request",
			"POST /":           "1 2xx of service, 1 service, 1 request",
			"HEAD /":           "1 2xx of service, 1 service, 1 request",
			"GET /204":         "1 2xx of service, 1 service, 1 request",
			"GET /429":         "1 4xx of service, 1 service, 1 request",
			"GET /500":         "1 5xx of service, 1 service, 1 request",
			"GET /v1/..;/":     "1 4xx of headgate, 0 service, 1 request",
			"POST /close":      "1 5xx of service_failed, 1 service, 1 request",
			"GET /cut":         "1 2xx of service_failed, 1 service, 1 request",
			"GET /v1/product":  "1 2xx of service, 1 service, 1 request",
			"GET /v1/product ": "1 4xx of headgate, 1 2xx of service, 1 service, 2 request",
			"GET /v1/product, POST /v1/product, GET /429, GET /429, POST /close": "1 4xx of headgate, 1 2xx of service, 2 4xx of service, " +
				"1 5xx of service_failed, 4 service, 5 request",
		} {
			t.Run(requests, func(t *testing.T) {
				t.Parallel() // HTTP/2 connections of net/http take a second to drain.
				o := newOriginSetup(t, fast, protocol, UpstreamConfig{Timeout: time.Minute})
				if strings.HasSuffix(requests, " ") {
					requests += ", " + requests
				}
				for request := range strings.SplitSeq(requests, ", ") {
					method, path, _ := strings.Cut(strings.TrimSpace(request), " ")
					if err := o.ask(t.Context(), method, path); err != nil && path != "/cut" { // net/http's server may not have sent the header.
						t.Fatal(err)
					}
				}
				o.expect(t, want)
			})
		}
	})
}

// TestPlanesServiceTime checks the times of a service that takes long: the time until the proxy gives up, and the time until a
// client leaves.
func TestPlanesServiceTime(t *testing.T) {
	t.Parallel()
	onPlanesAndProtocols(t, func(t *testing.T, fast bool, protocol func(*http.Protocols)) {
		t.Helper()
		const patience = 110 * time.Millisecond
		late := func(d *report.Durations) bool { // No duration is below 100 ms, a bound of Durations.
			return d.Distribution().Below[100*time.Millisecond] == 0 && d.Sum() >= patience*9/10
		}
		check := func(o *originSetup, want string) {
			t.Helper()
			o.expect(t, want)
			if tr := o.proxy.traffic; !late(&tr.ServiceTime) || !late(&tr.RequestTime) || tr.RequestTime.Sum() < tr.ServiceTime.Sum() {
				t.Errorf("%s: the service took %v, the request %v, want at least %v", want, tr.ServiceTime.Sum(), tr.RequestTime.Sum(), patience)
			}
		}
		o := newOriginSetup(t, fast, protocol, UpstreamConfig{Timeout: patience})
		if err := o.ask(t.Context(), http.MethodGet, "/hang"); err != nil {
			t.Fatal(err)
		}
		check(o, "1 5xx of service_failed, 1 service, 1 request")

		o = newOriginSetup(t, fast, protocol, UpstreamConfig{Timeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			<-o.hangs
			<-time.After(patience)
		}()
		if err := o.ask(ctx, http.MethodGet, "/hang"); err == nil {
			t.Fatal("got an answer of a service that hangs")
		}
		check(o, "1 canceled of service, 1 service, 1 request")
	})
}

// TestPlanesOriginOfUpgrade checks that an upgraded connection has a service time, and that its length is not the time of a request.
func TestPlanesOriginOfUpgrade(t *testing.T) {
	for _, fast := range []bool{true, false} {
		o := newOriginSetup(t, fast, http1Only, UpstreamConfig{Timeout: time.Minute})
		if got := talk(t, o.at, "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 101 ") {
			t.Fatalf("got %q, want an upgrade", got)
		}
		o.expect(t, "1 1xx of service, 1 service, 0 request")
	}
}

// TestPlanesOriginOfTheQueue checks a client that leaves while Headgate lets it wait, and a broken upload.
func TestPlanesOriginOfTheQueue(t *testing.T) {
	t.Parallel()
	onPlanesAndProtocols(t, func(t *testing.T, fast bool, protocol func(*http.Protocols)) {
		t.Helper()
		o := newOriginSetup(t, fast, protocol, UpstreamConfig{Timeout: time.Minute}, func(c *Config) {
			g, err := guard.New(guard.Config{Rules: []guard.Rule{product(t)}, Store: waiting(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			c.Guard = g
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for o.proxy.traffic.Waiting.Load() == 0 && t.Context().Err() == nil {
				<-time.After(time.Millisecond)
			}
		}()
		if err := o.ask(ctx, http.MethodGet, "/v1/product"); err == nil {
			t.Fatal("got an answer before the departure")
		}
		o.expect(t, "1 canceled of headgate, 0 service, 1 request")
	})
	for _, fast := range []bool{true, false} {
		o := newOriginSetup(t, fast, http1Only, UpstreamConfig{Timeout: time.Minute})
		talk(t, o.at, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n")
		o.expect(t, "1 4xx of headgate, 0 service, 1 request")
	}
}
