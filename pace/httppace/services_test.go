package httppace_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/pace/httppace"
)

// answers is a base that answers each request as a test says.
type answers func(n int, r *http.Request) (status int, header http.Header)

// counted is a base with a count of its requests.
type counted struct {
	n      int
	answer answers
	seen   []*http.Request
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	c.seen = append(c.seen, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	status, header := c.answer(c.n, r)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func toServices(t *testing.T, retries int, a answers) (*httppace.Transport, *counted) {
	t.Helper()
	base := &counted{answer: a}
	tr, err := httppace.New(httppace.Config{Base: base, Services: []string{"*.internal"}, Retries: retries})
	if err != nil {
		t.Fatal(err)
	}
	return tr, base
}

// get makes a request, and gives the status of its answer.
func get(ctx context.Context, t *testing.T, tr http.RoundTripper, url string) (status int, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if resp != nil {
		status = resp.StatusCode
		_ = resp.Body.Close()
	}
	if r.Header.Get(throttle.FieldCriticality) != "" {
		t.Error("the caller's request was changed")
	}
	return status, err
}

func fine(int, *http.Request) (int, http.Header) { return http.StatusOK, nil }

// TestStates: services get the class and the deadline of the context, and other hosts do not.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, base := toServices(t, 0, fine)
		ctx, cancel := context.WithTimeout(throttle.WithClass(t.Context(), throttle.Critical), 700*time.Millisecond)
		defer cancel()
		for url, want := range map[string]string{"http://search.internal/a": "critical 700", "http://api.example.com/": " "} {
			if _, err := get(ctx, t, tr, url); err != nil {
				t.Fatal(err)
			}
			h := base.seen[len(base.seen)-1].Header
			if got := h.Get(throttle.FieldCriticality) + " " + h.Get(throttle.FieldTimeout); got != want {
				t.Errorf("%s gets %q, want %q", url, got, want)
			}
		}
		if _, err := get(t.Context(), t, tr, "http://search.internal/a"); err != nil || len(base.seen[2].Header) != 0 {
			t.Errorf("without a class and a deadline: %v, %v", base.seen[2].Header, err)
		}
	})
}

// TestDrops: a service refuses sheddable requests. Most of them are not sent, and critical ones are.
func TestDrops(t *testing.T) {
	tr, base := toServices(t, 0, func(_ int, r *http.Request) (int, http.Header) {
		if r.Header.Get(throttle.FieldCriticality) == "sheddable" {
			return http.StatusServiceUnavailable, nil
		}
		return http.StatusOK, nil
	})
	sheddable, critical := throttle.WithClass(t.Context(), throttle.Sheddable), throttle.WithClass(t.Context(), throttle.Critical)
	dropped := 0
	for range 2000 {
		if _, err := get(critical, t, tr, "http://search.internal/a"); err != nil {
			t.Fatal(err)
		}
		_, err := get(sheddable, t, tr, "http://search.internal/a")
		if _, ok := errortype.As[*adaptive.DropError](err); ok {
			dropped++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if sent := base.n - 2000; dropped+sent != 2000 || sent > 400 || sent < 100 { // about 1 of 10, and the first ones
		t.Errorf("%d sheddable requests were sent, and %d dropped", sent, dropped)
	}
}

// TestRetriesOfServices: a refused request is sent again after its Retry-After, and retries are at most a tenth
// of the requests.
func TestRetriesOfServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, base := toServices(t, 1, func(n int, _ *http.Request) (int, http.Header) {
			if n == 11 {
				return http.StatusServiceUnavailable, http.Header{"Retry-After": {"2"}}
			}
			return http.StatusOK, nil
		})
		for range 10 {
			_, _ = get(t.Context(), t, tr, "http://search.internal/a")
		}
		began := time.Now()
		got, err := get(t.Context(), t, tr, "http://search.internal/a")
		if elapsed := time.Since(began); err != nil || got != http.StatusOK || elapsed < 2*time.Second || base.n != 12 {
			t.Errorf("%d, %v after %v and %d requests", got, err, elapsed, base.n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tr, base := toServices(t, 5, func(int, *http.Request) (int, http.Header) {
			return http.StatusServiceUnavailable, http.Header{"Retry-After": {"1"}}
		})
		sent := 0
		for range 200 {
			if got, err := get(t.Context(), t, tr, "http://search.internal/a"); err == nil {
				sent++
				if got != http.StatusServiceUnavailable {
					t.Fatal(got)
				}
			}
		}
		// Most requests are dropped at random before they are sent. In one run of five, no retry is sent.
		if retries := base.n - sent; retries > 20 {
			t.Errorf("%d retries of 200 requests, want at most 20", retries)
		}
	})
}

// A request that its caller cancels says nothing about the service.
func TestCanceledRequests(t *testing.T) {
	tr, _ := toServices(t, 0, fine)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if _, err := get(ctx, t, tr, "http://search.internal/a"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := get(t.Context(), t, tr, "http://search.internal/a"); err != nil {
		t.Error(err)
	}
}

// TestContext: a handler behind the throttle passes class and deadline on, through a real server.
func TestContext(t *testing.T) {
	var got string
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get(throttle.FieldCriticality)
		if r.Header.Get(throttle.FieldTimeout) == "" {
			got += " without a deadline"
		}
	}))
	defer far.Close()
	tr, err := httppace.New(httppace.Config{Services: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.CloseIdleConnections()
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := httppace.Context(r)
		defer cancel()
		if _, err := get(ctx, t, tr, far.URL); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer near.Close()
	for sent, want := range map[string]string{"critical 5000": "critical", "odd 5000": "", "critical -5": "critical without a deadline", "critical 9999999999999": "critical without a deadline"} {
		class, timeout, _ := strings.Cut(sent, " ")
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, near.URL, http.NoBody)
		r.Header.Set(throttle.FieldCriticality, class)
		r.Header.Set(throttle.FieldTimeout, timeout)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got != want {
			t.Errorf("%q: the far service gets %q, want %q", sent, got, want)
		}
	}
}
