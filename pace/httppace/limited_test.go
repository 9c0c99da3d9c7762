package httppace_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/httppace"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// limited is a service behind Headgate's own middleware.
func limited(t *testing.T, policy headgate.Policy, soft int, style fields.Style) http.Handler {
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
		Rule: rule.Rule{Name: "calls", Key: []rule.Part{all}}, Policies: []headgate.Policy{policy}, Soft: soft,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(g, httplimit.Options{Style: style})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// tally counts the answers of a service, after some time for learning.
type tally struct {
	next            http.RoundTripper
	from            time.Time
	refusal         func() // called for each refusal, unless nil
	served, refused atomic.Int64
}

func (c *tally) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusTooManyRequests && c.refusal != nil:
		c.refusal()
	case time.Now().Before(c.from):
	case resp.StatusCode == http.StatusTooManyRequests:
		c.refused.Add(1)
	default:
		c.served.Add(1)
	}
	return resp, err
}

// saturate sends requests of many callers without pauses until ctx ends.
func saturate(ctx context.Context, t *testing.T, paced http.RoundTripper, url string, callers int) {
	t.Helper()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := paced.RoundTrip(req)
				if err != nil {
					return // no permit before the end
				}
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
}

// TestLearnsFromOurMiddleware: after some time for learning, Headgate's own middleware refuses
// almost no request of this client. This holds for each algorithm and form of the fields, with
// the right limit and with one that is too high.
func TestLearnsFromOurMiddleware(t *testing.T) {
	fifty := headgate.Limit{Count: 50, Per: time.Second}
	window := headgate.Limit{Count: 500, Per: 10 * time.Second}
	const learning, measuring = 30, 60 // seconds
	for _, c := range []struct {
		name      string
		policy    headgate.Policy
		soft      int
		style     fields.Style
		limit     int64 // of the client, per second
		smoothing pace.Smoothing
		used      float64 // at least this part of the provider's capacity
		refused   float64 // at most this part of the requests
	}{
		{"right", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: fifty}, 0, fields.Draft, 50, pace.Off, 0.999, 0},
		{"right, evenly", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: fifty}, 0, fields.Draft, 50, pace.EvenSpread, 0.999, 0},
		{"right, evenly, against a bucket", headgate.Policy{Limit: fifty}, 0, fields.Draft03, 50, pace.EvenSpread, 0.999, 0},
		{"right, evenly, against ten seconds", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: window}, 0, fields.Draft, 50, pace.EvenSpread, 0.98, 0},
		{"twice", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: fifty}, 0, fields.Draft, 100, pace.Off, 0.55, 0.03},
		{"twice, evenly", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: fifty}, 0, fields.Draft, 100, pace.EvenSpread, 0.55, 0.03},
		{"twice, against a bucket", headgate.Policy{Limit: fifty}, 0, fields.XRateLimit, 100, pace.EvenSpread, 0.55, 0.03},
		{"twice, against a log", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: fifty}, 0, fields.None, 100, pace.EvenSpread, 0.55, 0.03},
		{"twice, against ten seconds", headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: window, SubWindows: 10}, 0, fields.Draft, 100, pace.EvenSpread, 0.55, 0.03},
		{"twice, with a warning before", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: fifty}, 80, fields.None, 100, pace.EvenSpread, 0.55, 0.01},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted := &tally{next: handled{limited(t, c.policy, c.soft, c.style)}, from: time.Now().Add(learning * time.Second)}
				plan, err := schedule.Even(c.limit, time.Second, 1, 0)
				if err != nil {
					t.Fatal(err)
				}
				p, err := pace.New(pace.Config{
					Provider: "mail", Source: pace.Static(plan), Smoothing: c.smoothing, Logger: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				paced := transport(t, p, httppace.Config{Base: counted})
				saturate(within(t, (learning+measuring)*time.Second), t, paced, "http://api.example.com/v1", 120)
				served, refused := float64(counted.served.Load()), float64(counted.refused.Load())
				t.Logf("%.3f of what is borne was used, %.4f refused; %+v", served/(50*measuring), refused/(served+refused), paced.Stats()[0])
				if served < c.used*50*measuring {
					t.Errorf("%.3f of what is borne was used, want %v", served/(50*measuring), c.used)
				}
				if refused > c.refused*(served+refused) {
					t.Errorf("%.4f of the requests were refused, want at most %v", refused/(served+refused), c.refused)
				}
			})
		})
	}
}

// handled is a service that is called without a network.
type handled struct{ http.Handler }

func (h handled) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Result(), req.Context().Err()
}

// TestRealServer: a server on loopback accepts less than the client's limit. After its first
// refusals, it refuses almost nothing.
func TestRealServer(t *testing.T) {
	policy := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 90, Per: time.Second}}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: limited(t, policy, 0, fields.Draft), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	base := &http.Transport{MaxIdleConnsPerHost: 16}
	counted := &tally{next: base}
	paced, err := httppace.New(httppace.Config{
		Base: counted, Retries: 2, Hosts: map[string]*pace.Pacer{"127.0.0.1": pacerOf(t, "mail", 100, time.Second)},
	})
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s/v1", listener.Addr())

	learning, learned := context.WithTimeout(t.Context(), time.Minute)
	defer learned()
	counted.refusal = learned
	saturate(learning, t, paced, url, 16)
	s := paced.Stats()[0]
	if s.Refused == 0 {
		t.Fatalf("nothing was refused in a minute, so that nothing was learned: %+v", s)
	}
	counted.refusal = nil
	saturate(within(t, 4500*time.Millisecond), t, paced, url, 16)
	base.CloseIdleConnections()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-served
	t.Logf("until it had learned: %+v; then: %+v", s, paced.Stats()[0])
	if n := counted.served.Load(); n == 0 || counted.refused.Load() > n/20 {
		t.Errorf("after it has learned, %d were served and %d refused", n, counted.refused.Load())
	}
}
