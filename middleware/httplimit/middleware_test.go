package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestAllow checks that an allowed request reaches the service with the original writer, so
// that flushing and hijacking still work. The response has the rate limit fields.
func TestAllow(t *testing.T) {
	s := newStage(t, allowed(), product(t))
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions} {
		r := httptest.NewRequestWithContext(t.Context(), method, "/v1/product", http.NoBody)
		w := s.serve(r)
		if w.Code != http.StatusTeapot || s.writer != w || s.request != r {
			t.Errorf("%s: got status %d with writer %p and request %p, want 418 with %p and %p", method, w.Code, s.writer, s.request, w, r)
		}
		for name, want := range map[string]string{
			"RateLimit-Policy": `"product";q=100;w=60`, "RateLimit": `"product";r=99;t=1`, "Headgate-Warning": "",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s = %q, want %q", method, name, got, want)
			}
		}
	}
	if w := s.get(t, "/elsewhere", nil); w.Code != http.StatusTeapot || len(w.Header()) != 0 {
		t.Errorf("without a rule: got %d %v, want 418 without fields", w.Code, w.Header())
	}
}

// TestUnresolvedPath checks that a path that needs resolving is refused, because an outer
// router has chosen its handler by the path as sent. No rule counts the request, and the
// service does not receive it.
func TestUnresolvedPath(t *testing.T) {
	store := allowed()
	s := newStage(t, store, product(t))
	for _, target := range []string{"//v1/product", "/v1/./product", "/v1/x/../product", "/x/%2e%2e/v1/product", "/v1/product/.", "//"} {
		w := s.get(t, target, nil)
		if p := problemOf(t, w); w.Code != http.StatusBadRequest || s.request != nil || !strings.Contains(p.Detail, "send the path without them") {
			t.Errorf("%s: got status %d, service reached: %v, body %s", target, w.Code, s.request != nil, w.Body)
		}
	}
	if len(store.ops) > 0 {
		t.Errorf("the store got the ops %v, want none", store.ops)
	}
}

// TestForwardedPath checks that with ResolvePath the service sees the path that the rules
// matched.
func TestForwardedPath(t *testing.T) {
	s := new(stage)
	s.guard(t, httplimit.Options{ResolvePath: true}, allowed(), product(t))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "//x/..//v1/product?a=1;b&c=%zz", http.NoBody)
	w := s.serve(r)
	if w.Header().Get("RateLimit") == "" || s.request.URL.Path != "/v1/product" || s.request.RequestURI != "/v1/product?a=1;b&c=%zz" {
		t.Errorf("the service got the path %q for %q, response %v", s.request.URL, s.request.RequestURI, w.Header())
	}
	if r.URL.Path != "//x/..//v1/product" {
		t.Errorf("the original request was changed to %q", r.URL)
	}
	r = httptest.NewRequestWithContext(t.Context(), http.MethodConnect, "example.com:443", http.NoBody)
	if s.serve(r); s.request != r || s.request.URL.Path != "" {
		t.Errorf("CONNECT reached the service with the path %q", s.request.URL.Path)
	}
}

// TestRefuse checks the responses for the decisions of a store.
func TestRefuse(t *testing.T) {
	unavailable := &scripted{err: context.DeadlineExceeded} // The rule's fallback denies.
	redirect := func(r *guard.Rule) {
		r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "https://queue.example/{path}"}
	}
	gone := func(r *guard.Rule) { r.Exceed.Status = http.StatusGone }
	unchanged := func(*guard.Rule) {}
	for _, c := range []struct {
		reason   string
		store    *scripted
		change   func(*guard.Rule)
		status   int
		retry    string
		location string
		kind     string
	}{
		{"over_limit", denied(headgate.OverLimit, 1500*time.Millisecond), unchanged, 429, "2", "", "quota-exceeded"},
		{"over_limit", denied(headgate.OverLimit, 0), unchanged, 429, "*", "", "quota-exceeded"},
		{"over_limit", denied(headgate.OverLimit, time.Second), gone, 410, "1", "", "quota-exceeded"},
		{"over_limit", denied(headgate.OverLimit, time.Second), redirect, 302, "1", "https://queue.example/v1/product", "quota-exceeded"},
		{"never", denied(headgate.Never, 0), unchanged, 429, "", "", "quota-exceeded"},
		{"queue_full", denied(headgate.QueueFull, time.Second), unchanged, 429, "1", "", "quota-exceeded"},
		{"wait_too_long", denied(headgate.WaitTooLong, time.Minute), unchanged, 429, "60", "", "quota-exceeded"},
		{"banned", denied(headgate.Banned, time.Hour), unchanged, 429, "3600", "", "abnormal-usage-detected"},
		{"banned", denied(headgate.Banned, time.Hour), gone, 410, "3600", "", "abnormal-usage-detected"},
		{"banned", denied(headgate.Banned, time.Hour), redirect, 302, "3600", "https://queue.example/v1/product", "abnormal-usage-detected"},
		{"store_full", denied(headgate.StoreFull, 0), gone, 503, "*", "", "temporary-reduced-capacity"},
		{"store_unavailable", unavailable, redirect, 503, "*", "", "temporary-reduced-capacity"},
	} {
		t.Run(fmt.Sprint(c.reason, c.status), func(t *testing.T) {
			s := newStage(t, c.store, product(t, c.change))
			w := s.get(t, "/v1/product?client=said", nil)
			if s.request != nil {
				t.Error("a refused request reached the service")
			}
			h := w.Header()
			retry := h.Get("Retry-After")
			if c.retry == "*" && (retry == "1" || retry == "2") { // Spread over the clients whose wait is not known.
				retry = "*"
			}
			if w.Code != c.status || retry != c.retry || h.Get("Location") != c.location || h.Get("Cache-Control") != "no-store" {
				t.Errorf("got status %d, header %v, want %d, Retry-After %q, Location %q", w.Code, h, c.status, c.retry, c.location)
			}
			if !strings.HasPrefix(h.Get("RateLimit"), `"product";r=0`) || h.Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
				t.Errorf("header %v does not fit a body of %d bytes", h, w.Body.Len())
			}
			p := problemOf(t, w)
			want := "https://iana.org/assignments/http-problem-types#" + c.kind
			if p.Type != want || p.Reason != c.reason || !slices.Equal(p.Violated, []string{"product"}) || strings.Contains(w.Body.String(), "said") {
				t.Errorf("got problem %+v, want type %s and reason %s", p, want, c.reason)
			}
		})
	}
}

// TestFaults checks that a client's faults give 400 and say what is wrong, without echoing
// the client's text.
func TestFaults(t *testing.T) {
	s := newStage(t, allowed(), product(t, func(r *guard.Rule) { r.CostHeader, r.MaxCost = "X-Cost", 50 }))
	if w := s.get(t, "/v1/product", http.Header{"X-Cost": {"50"}}); w.Code != http.StatusTeapot {
		t.Errorf("a cost of 50: status %d, want 418", w.Code)
	}
	for _, c := range []struct{ name, target, cost, want string }{
		{"cost is no number", "/v1/product", "5<b>", "X-Cost is no whole number"},
		{"cost is too high", "/v1/product", "51", "X-Cost is out of range: write 1 to 50"},
		{"path", "/v1%5cproduct", "1", "The request's path is ambiguous: services read it in different ways."},
		{"path", "/x/..;/v1/product", "1", "The request's path is ambiguous: services read it in different ways."},
		{"path", "http:v1/product", "1", "The request's path is ambiguous: services read it in different ways."},
	} {
		w := s.get(t, c.target, http.Header{"X-Cost": {c.cost}})
		if p := problemOf(t, w); w.Code != http.StatusBadRequest || p.Type != "about:blank" || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s: got %d %s, want 400 with %q", c.name, w.Code, w.Body, c.want)
		}
		// The pooled exchange served an allowed request before.
		if s.request != nil || w.Header().Get("RateLimit") != "" || strings.Contains(w.Body.String(), "<b>") {
			t.Errorf("%s: the response has text or fields of another request: %v %s", c.name, w.Header(), w.Body)
		}
	}
	if s.log.Len() > 0 {
		t.Errorf("the log got %q, want nothing: any client could fill the log", s.log.String())
	}
}

// TestOurFault checks that an internal error gives 500 without details, and is logged.
func TestOurFault(t *testing.T) {
	var x httplimit.Exchange
	w := httptest.NewRecorder()
	if ours := x.Fail(w, errors.New("secret")); !ours || w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("Fail returned %v, response %d %s", ours, w.Code, w.Body)
	}
	problemOf(t, w)
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStage(t, waiting(1500*time.Millisecond), product(t)), time.Now()
		if w := s.get(t, "/v1/product", nil); w.Code != http.StatusTeapot || s.at.Sub(began) != 1500*time.Millisecond {
			t.Errorf("the service was reached after %v, status %d, want after 1.5s", s.at.Sub(began), w.Code)
		}
	})
}

// TestDeadlineBeforeTheTurn checks that a request is refused at once if its deadline is
// before its turn.
func TestDeadlineBeforeTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := waiting(time.Hour)
		s := newStage(t, store, product(t))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		w := s.serve(httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/product", http.NoBody))
		if s.request != nil || time.Since(began) != 0 || w.Code != http.StatusTooManyRequests {
			t.Errorf("ended after %v with status %d, service reached: %v", time.Since(began), w.Code, s.request != nil)
		}
		if reason := problemOf(t, w).Reason; reason != "wait_too_long" || len(store.returned) != 1 {
			t.Errorf("got reason %v, returned receipts %v", reason, store.returned)
		}
	})
}

// TestEndsWhileWaiting checks a request that ends before its turn. The request does not
// reach the service, its units are returned, and its response is not an empty 200.
func TestEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := waiting(time.Hour)
		s := newStage(t, store, product(t))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		w := s.serve(httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/product", http.NoBody))
		if s.request != nil || time.Since(began) != time.Second || w.Code != http.StatusServiceUnavailable {
			t.Errorf("ended after %v with status %d, service reached: %v", time.Since(began), w.Code, s.request != nil)
		}
		problemOf(t, w)
		if len(store.returned) != 1 || store.returned[0].Nonce != 7 || s.log.Len() > 0 {
			t.Errorf("returned receipts %v, log %q, want the only receipt", store.returned, s.log.String())
		}
	})
}

// TestWaitIsNotReturned checks that a failed return of units is logged.
func TestWaitIsNotReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stubborn{waiting(time.Hour)}
		s := newStage(t, store, product(t))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s.serve(httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/product", http.NoBody))
		if !strings.Contains(s.log.String(), "refuses to return") {
			t.Errorf("the log got %q, want the error of Return", s.log.String())
		}
	})
}

// stubborn is a store whose Return fails.
type stubborn struct{ *scripted }

func (*stubborn) Return(context.Context, []headgate.Receipt) error {
	return errors.New("refuses to return")
}

func (s *stubborn) ReturnLast(ctx context.Context, _ *headgate.Receipt) (bool, error) {
	return false, s.Return(ctx, nil)
}

// TestStyles checks that Options.Style selects the fields.
func TestStyles(t *testing.T) {
	for style, want := range map[fields.Style]string{
		fields.XRateLimit: "X-Ratelimit-Remaining", fields.Draft03: "Ratelimit-Remaining", fields.None: "",
	} {
		h := httplimit.New(newGuard(t, allowed(), product(t)), httplimit.Options{Style: style})(new(service))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody))
		if want == "" && len(w.Header()) > 0 || want != "" && w.Header().Get(want) != "99" {
			t.Errorf("style %v: got header %v, want %s", style, w.Header(), want)
		}
	}
}

// TestSharedExactly checks that handlers of one guard share its counters, and that
// concurrent requests do not exceed the limit.
func TestSharedExactly(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	limited := httplimit.New(newGuard(t, store, product(t)), httplimit.Options{})
	handlers := []http.Handler{limited(http.NotFoundHandler()), limited(http.NotFoundHandler())}
	const workers, requests = 8, 40
	statuses := make([]map[int]int, workers)
	var wait sync.WaitGroup
	for worker := range workers {
		statuses[worker] = map[int]int{}
		wait.Go(func() {
			for range requests {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
				handlers[worker%2].ServeHTTP(w, r)
				statuses[worker][w.Code]++
			}
		})
	}
	wait.Wait()
	passed, refused := 0, 0
	for _, s := range statuses {
		passed, refused = passed+s[http.StatusNotFound], refused+s[http.StatusTooManyRequests]
	}
	// A token bucket of 100 per minute gains one token in 600 ms. The requests take a few
	// milliseconds.
	if passed < 100 || passed > 102 || passed+refused != workers*requests {
		t.Errorf("%d requests passed and %d were refused, want 100 passed of %d", passed, refused, workers*requests)
	}
}
