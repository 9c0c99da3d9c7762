package httplimit_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

func degrade(header, value string) func(*guard.Rule) {
	return func(r *guard.Rule) {
		r.Exceed = guard.Exceed{Action: guard.Degrade, Header: header, Value: value}
	}
}

// TestMarks checks that the service learns the guard's decision, and that a client cannot
// forge the marks.
func TestMarks(t *testing.T) {
	forged := http.Header{"Headgate-Warning": {"forged"}, "X-Service-Level": {"premium", "gold"}, "X-Other": {"kept"}}
	basic, soft := degrade("X-Service-Level", "basic"), func(r *guard.Rule) { r.Soft = 80 }
	named := func(name string) func(*guard.Rule) { return func(r *guard.Rule) { r.Name = name } }
	shadow := func(r *guard.Rule) { r.Mode = guard.Shadow }
	for _, c := range []struct {
		name   string
		target string
		store  *scripted
		rules  []guard.Rule
		want   http.Header
	}{
		{"no rule matches", "/elsewhere", allowed(), []guard.Rule{product(t, basic)}, http.Header{}},
		{"within the limits", "/v1/product", allowed(), []guard.Rule{product(t, basic, soft)}, http.Header{}},
		{
			"above the soft limit", "/v1/product", nearly(),
			[]guard.Rule{product(t, basic, soft)},
			http.Header{"Headgate-Warning": {`soft-limit; policy="product"`}},
		},
		{
			"degraded", "/v1/product", denied(headgate.OverLimit, time.Second),
			[]guard.Rule{product(t, basic)},
			http.Header{"X-Service-Level": {"basic"}},
		},
		{
			"degraded by several", "/v1/product", denied(headgate.OverLimit, time.Second),
			[]guard.Rule{
				product(t, basic), product(t, basic, named("b")), product(t, degrade("X-Service-Level", "least"), named("c")),
				product(t, degrade("X-Cached", "yes"), named("d")),
			},
			http.Header{"X-Service-Level": {"basic", "least"}, "X-Cached": {"yes"}},
		},
		{
			"a shadow rule marks nothing", "/v1/product", denied(headgate.OverLimit, time.Second),
			[]guard.Rule{product(t, basic, shadow)},
			http.Header{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, came := newStage(t, c.store, c.rules...), forged.Clone()
			s.get(t, c.target, came)
			for _, name := range []string{"Headgate-Warning", "X-Service-Level", "X-Cached"} {
				if got, want := s.request.Header[name], c.want[name]; !slices.Equal(got, want) {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			if s.request.Header.Get("X-Other") != "kept" || !slices.Equal(came["X-Service-Level"], forged["X-Service-Level"]) {
				t.Errorf("the service got %v, and the original header is now %v", s.request.Header, came)
			}
		})
	}
}

// TestMarksInOtherSpellings checks services that read headers as environment variables. They
// confuse X_Level with X-Level, in any case. Only forged names are removed.
func TestMarksInOtherSpellings(t *testing.T) {
	s := newStage(t, allowed(), product(t, degrade("X-Service-Level", "basic")))
	came := http.Header{}
	for _, name := range []string{"X_Service_Level", "x-service_LEVEL", "X_SERVICE-LEVEL", "Headgate_Warning", "X_Service.Level", "X_Client_Id"} {
		came.Set(name, "sent")
	}
	s.get(t, "/v1/product", came)
	if got := slices.Sorted(maps.Keys(s.request.Header)); !slices.Equal(got, []string{"X_client_id", "X_service.level"}) {
		t.Errorf("the service got %v", got)
	}
}

// TestMarksOnNoHeader checks that a request without a header map can be marked.
func TestMarksOnNoHeader(t *testing.T) {
	s := newStage(t, nearly(), product(t, func(r *guard.Rule) { r.Soft = 80 }))
	s.serve(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/v1/product"}})
	if got := s.request.Header.Get("Headgate-Warning"); got != `soft-limit; policy="product"` {
		t.Errorf("Headgate-Warning = %q", got)
	}
}

// TestMarksPassProxies checks a client that lists a mark in Connection. A later proxy must
// not drop the mark.
func TestMarksPassProxies(t *testing.T) {
	var got http.Header
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer behind.Close()
	at, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	s := newStage(t, denied(headgate.OverLimit, time.Second), product(t, degrade("X-Service-Level", "basic")))
	s.get(t, "/v1/product", http.Header{"Connection": {"x-hop, x-service-level ,X-Service-Level", "X-Service-Level"}, "X-Hop": {"1"}})
	reverse := &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(at) }, Transport: transport}
	reverse.ServeHTTP(httptest.NewRecorder(), s.request)
	if got.Get("X-Service-Level") != "basic" || got.Get("X-Hop") != "" {
		t.Errorf("the service behind the proxy got %v", got)
	}
}
