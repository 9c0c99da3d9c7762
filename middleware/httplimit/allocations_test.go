package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

// bare is a writer that keeps only its header map.
type bare http.Header

func (b bare) Header() http.Header         { return http.Header(b) }
func (b bare) Write(p []byte) (int, error) { return len(p), nil }
func (b bare) WriteHeader(int)             {}

// TestAllocations checks that an allowed request allocates only its fields, and nothing
// without fields.
func TestAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	ample := func(r *guard.Rule) { r.Policies[0].Limit.Count = 1e9 }
	for _, c := range []struct {
		name   string
		target string
		style  fields.Style
		want   float64
	}{
		{"draft fields", "/v1/product", fields.Draft, 1},
		{"x-ratelimit fields", "/v1/product", fields.XRateLimit, 1},
		{"no fields", "/v1/product", fields.None, 0},
		{"no rule", "/elsewhere", fields.Draft, 0},
	} {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		byIP := keyed(t, "by-ip", "/v1/product", "ip")
		ample(&byIP)
		g := newGuard(t, store, product(t, ample), byIP)
		nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		h := httplimit.New(g, httplimit.Options{Style: c.style})(nothing)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.target, http.NoBody)
		r.Header = http.Header{"X-Client-Id": {"a"}, "Accept": {"*/*"}, "Cookie": {"session=s"}}
		w := bare{}
		h.ServeHTTP(w, r)
		if w.Header().Get("Retry-After") != "" {
			t.Fatal("the request was refused")
		}
		if n := testing.AllocsPerRun(200, func() {
			clear(w)
			h.ServeHTTP(w, r)
		}); n != c.want {
			t.Errorf("%s: got %v allocations, want %v", c.name, n, c.want)
		}
	}
}

// TestRefusalAllocations checks that a refused request allocates its fields, and the fields of its document. The
// document itself is written again only with other seconds.
func TestRefusalAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	spent := func(r *guard.Rule) { r.Policies[0].Limit = headgate.Limit{Count: 1, Per: time.Hour} }
	for style, want := range map[fields.Style]float64{fields.Draft: 2, fields.XRateLimit: 2, fields.None: 1} {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		h := httplimit.New(newGuard(t, store, product(t, spent)), httplimit.Options{Style: style})(http.NotFoundHandler())
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
		r.Header = http.Header{"X-Client-Id": {"a"}}
		w := bare{}
		for range 2 {
			clear(w)
			h.ServeHTTP(w, r)
		}
		if w.Header().Get("Retry-After") == "" {
			t.Fatal("the request was allowed")
		}
		if n := testing.AllocsPerRun(200, func() {
			clear(w)
			h.ServeHTTP(w, r)
		}); n != want {
			t.Errorf("style %v: got %v allocations, want %v", style, n, want)
		}
	}
}
