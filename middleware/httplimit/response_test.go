package httplimit_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

// responds returns a rule with this answer.
func responds(t *testing.T, r refusal.Response) guard.Rule {
	t.Helper()
	made, err := refusal.New(r)
	if err != nil {
		t.Fatal(err)
	}
	return product(t, func(one *guard.Rule) { one.Exceed.Response = made })
}

// TestResponses: a refusal has the body of its rule, in the type of the client's Accept. Retry-After, the status and the rate limit
// fields stay, and calls of gRPC and Connect keep the errors of their protocols.
func TestResponses(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	own := refusal.Response{
		ContentType: "text/plain", Body: "{status} {policy} {limit} {retry_after} {reset} {key} {request_id}\n",
		Headers: []refusal.Header{{Name: "x-reason", Value: "{reason}"}, {Name: "X-Fixed", Value: "1"}},
	}
	for _, c := range []struct {
		name     string
		response refusal.Response
		header   http.Header
		kind     string
		body     string // a part of it
		fields   http.Header
	}{
		{
			"an own body", own,
			http.Header{"X-Request-Id": {"r<1>"}},
			"text/plain; charset=utf-8",
			"429 product 100/1m 30 30 header:X-Client-Id=\"a\" r<1>\n",
			http.Header{"X-Reason": {"over_limit"}, "X-Fixed": {"1"}, "X-Content-Type-Options": {"nosniff"}},
		},
		{
			"fields alone",
			refusal.Response{Headers: own.Headers[1:]},
			nil, "application/problem+json", `"title":"Quota Exceeded"`,
			http.Header{"X-Fixed": {"1"}},
		},
		{"a page", refusal.Response{Style: refusal.HTML}, http.Header{"Accept": {browser}}, "text/html; charset=utf-8", "<h1>Quota Exceeded</h1>", http.Header{
			"Vary": {"Accept"}, "Content-Security-Policy": {"default-src 'none'; style-src 'unsafe-inline'"},
		}},
		{"no page for a program", refusal.Response{Style: refusal.HTML}, http.Header{"Accept": {"*/*"}}, "application/problem+json", `"status":429`, http.Header{"Vary": {"Accept"}}},
		{"openai", refusal.Response{Style: refusal.OpenAI}, nil, "application/json", `{"error":{"message":"The limit of the policy product, 100/1m, is used up: retry in 30 s."`, nil},
		{"anthropic", refusal.Response{Style: refusal.Anthropic}, nil, "application/json", `"type":"rate_limit_error"`, nil},
		{"s3", refusal.Response{Style: refusal.S3}, nil, "application/xml; charset=utf-8", "<Code>SlowDown</Code>", nil},
		{"connect", own, http.Header{"Connect-Protocol-Version": {"1"}, "Content-Type": {"application/json"}}, "application/json", `{"code":"resource_exhausted"`, nil},
		{"grpc", own, http.Header{"Content-Type": {"application/grpc"}}, "application/grpc", "", http.Header{"Grpc-Status": {"8"}}},
	} {
		s := newStage(t, denied(headgate.OverLimit, 30*time.Second), responds(t, c.response))
		method := http.MethodGet
		if c.header.Get("Content-Type") != "" {
			method = http.MethodPost
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "/v1/product", http.NoBody)
		maps.Copy(r.Header, c.header)
		r.Header.Set("X-Client-Id", "a")
		w := s.serve(r)
		if got := w.Header().Get("Content-Type"); got != c.kind || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s: got %s %s, want %s with %s", c.name, got, w.Body, c.kind, c.body)
		}
		if w.Header().Get("Retry-After") != "30" || w.Header().Get("Ratelimit") == "" {
			t.Errorf("%s: got %v, want Retry-After and RateLimit", c.name, w.Header())
		}
		for name, want := range c.fields {
			if got := w.Header()[name]; !slices.Equal(got, want) {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got, want)
			}
		}
	}
}

// TestResponseAllocations: the body of a rule costs no allocation beyond those of a problem document.
func TestResponseAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	spent := func(r *guard.Rule) { r.Policies[0].Limit = headgate.Limit{Count: 1, Per: time.Hour} }
	for _, response := range []refusal.Response{
		{Style: refusal.HTML},
		{Style: refusal.OpenAI},
		{Style: refusal.S3},
		{ContentType: "application/json", Body: `{"k":"{key} {limit} {request_id}"}`, Headers: []refusal.Header{{Name: "X-A", Value: "1"}}},
	} {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		one := responds(t, response)
		spent(&one)
		policy, err := httplimit.NewCORS(httplimit.CORSConfig{Origins: []string{"https://a.example"}})
		if err != nil {
			t.Fatal(err)
		}
		h := httplimit.New(newGuard(t, store, one), httplimit.Options{CORS: policy})(http.NotFoundHandler())
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
		r.Header = http.Header{"X-Client-Id": {"a"}, "Accept": {"text/html"}, "Origin": {"https://a.example"}}
		w, want := bare{}, 2.0
		if response.Style == refusal.HTML {
			want = 3 // Vary has two names.
		}
		for range 2 {
			clear(w)
			h.ServeHTTP(w, r)
		}
		if http.Header(w).Get("Access-Control-Allow-Origin") != "https://a.example" {
			t.Fatalf("the answer has no field of CORS: %v", w)
		}
		if n := testing.AllocsPerRun(200, func() {
			clear(w)
			h.ServeHTTP(w, r)
		}); n > want {
			t.Errorf("%+v: got %v allocations, want %v", response, n, want)
		}
	}
}

// TestCORS: a page of a listed origin can read each answer of the middleware, and an answer of the service as the service says.
// Preflights take no units, unless they are to be counted.
func TestCORS(t *testing.T) {
	const origin = "https://app.example.com"
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	once := product(t, func(r *guard.Rule) {
		r.Policies[0].Limit, r.Match.Methods = headgate.Limit{Count: 1, Per: time.Hour}, nil
	})
	flood := keyed(t, "flood", "/flood", "all")
	flood.Match.Methods, flood.Policies = []string{http.MethodOptions}, once.Policies
	policy, err := httplimit.NewCORS(httplimit.CORSConfig{Origins: []string{origin}})
	if err != nil {
		t.Fatal(err)
	}
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/product" {
			w.Header().Set("Access-Control-Allow-Origin", "https://service.example")
			w.Header().Set("Access-Control-Expose-Headers", "X-Total")
		}
	})
	h := httplimit.New(newGuard(t, store, once, flood), httplimit.Options{CORS: policy})(service)
	send := func(method, target, from string, asks bool) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
		r.Header = http.Header{"X-Client-Id": {"a"}}
		if from != "" {
			r.Header.Set("Origin", from)
		}
		if asks {
			r.Header.Set("Access-Control-Request-Method", "GET")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for range 3 {
		if w := send(http.MethodOptions, "/v1/product", origin, true); w.Code != http.StatusOK {
			t.Fatalf("a preflight gets %d, want it to pass", w.Code)
		}
	}
	w := send(http.MethodGet, "/v1/product", origin, false)
	if got := w.Header(); w.Code != http.StatusOK || got.Get("Access-Control-Allow-Origin") != "https://service.example" ||
		!slices.Equal(got["Access-Control-Expose-Headers"], []string{"X-Total"}) {
		t.Errorf("the service's answer is %d %v, want the fields of the service", w.Code, got)
	}
	for from, want := range map[string]string{origin: origin, "https://evil.example": "", "": ""} {
		w := send(http.MethodGet, "/v1/product", from, false)
		if got := w.Header(); w.Code != http.StatusTooManyRequests || got.Get("Access-Control-Allow-Origin") != want || got.Get("Vary") != "Origin" ||
			(got.Get("Access-Control-Expose-Headers") != "") != (want != "") {
			t.Errorf("a refusal for %q is %d %v, want the origin %q", from, w.Code, got, want)
		}
	}
	if w := send(http.MethodOptions, "/v1/product", "https://evil.example", true); w.Code != http.StatusTooManyRequests {
		t.Errorf("a preflight of another origin gets %d, want it counted", w.Code)
	}
	if w := send(http.MethodGet, "/v1/../x", origin, false); w.Code != http.StatusBadRequest || w.Header().Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("a bad request gets %d %v, want fields of CORS", w.Code, w.Header())
	}
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if w := send(http.MethodOptions, "/flood", origin, true); w.Code != want {
			t.Errorf("preflight %d under a rule for OPTIONS gets %d, want %d", i, w.Code, want)
		}
	}
}

// TestResponseOfABan: the body of a rule holds for all refusals of the rule, with their own values.
func TestResponseOfABan(t *testing.T) {
	s := newStage(t, denied(headgate.Never, 0), responds(t, refusal.Response{
		ContentType: "application/json", Body: `{"wait": {retry_after}, "why": "{reason}", "kind": "{error_type}"}`,
	}))
	w := s.get(t, "/v1/product", http.Header{"X-Client-Id": {"a"}})
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got["wait"] != 0.0 || got["why"] != "never" || w.Header().Get("Retry-After") != "" {
		t.Errorf("got %s and %v (error %v), want no wait", w.Body, w.Header(), err)
	}
}
