package httplimit_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// share returns a fair share of 4 units per ten seconds between clients a and b. Each
// client has 2.
func share(t *testing.T, change ...func(*guard.FairShare)) *guard.FairShare {
	t.Helper()
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Cycle, f.Weights = 10*time.Second, map[string]int64{"a": 1, "b": 1}
	for _, c := range change {
		c(f)
	}
	return f
}

// fair returns a stage whose guard shares a capacity. The clock stands at the start of a
// cycle.
func fair(t *testing.T, c guard.Config) (*stage, *guard.Guard) {
	t.Helper()
	if c.Clock == nil {
		c.Clock = func() headgate.Instant { return 0 }
	}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := new(stage)
	s.handler = httplimit.New(g, httplimit.Options{Log: slog.New(slog.NewTextHandler(&s.log, nil))})(&s.service)
	return s, g
}

// client returns the header that names a client.
func client(name string) http.Header { return http.Header{"X-Client-Id": {name}} }

// admitted compares the units that clients received in this cycle.
func admitted(t *testing.T, g *guard.Guard, want map[string]int64) {
	t.Helper()
	shares, _ := g.Shares()
	got := map[string]int64{}
	for _, s := range shares.Clients {
		if s.Admitted > 0 {
			got[s.Client] = s.Admitted
		}
	}
	for name, n := range want {
		if got[name] != n || len(got) != len(want) {
			t.Errorf("admitted %v, want %v", got, want)
			return
		}
	}
}

// TestFairShare checks that only a client over its share is refused, and that all clients
// get the fields of their share.
func TestFairShare(t *testing.T) {
	s, g := fair(t, guard.Config{FairShare: share(t)})
	for i, c := range []struct {
		client, rate, reason string
	}{
		{"a", `"fair_share";r=1;t=10`, ""},
		{"a", `"fair_share";r=0;t=10`, ""},
		{"a", "", "over_share"},
		{"b", `"fair_share";r=1;t=10`, ""},
		{"", `"fair_share";r=0`, "anonymous_client"},
	} {
		w := s.get(t, "/v1/product", client(c.client))
		h := w.Header()
		if passed := s.request != nil; passed != (c.reason == "") {
			t.Errorf("request %d: service reached: %v", i, passed)
		}
		if got := h.Get("RateLimit"); c.rate != "" && got != c.rate {
			t.Errorf("request %d: RateLimit = %q, want %q", i, got, c.rate)
		}
		if c.reason == "" {
			if w.Code != http.StatusTeapot || h.Get("Retry-After") != "" || h.Get("RateLimit-Policy") != `"fair_share";q=2;w=10` {
				t.Errorf("request %d: got status %d, header %v", i, w.Code, h)
			}
			continue
		}
		p := problemOf(t, w)
		if w.Code != http.StatusTooManyRequests || p.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" ||
			p.Reason != c.reason || !slices.Equal(p.Violated, []string{"fair_share"}) || h.Get("Cache-Control") != "no-store" {
			t.Errorf("request %d: got status %d, header %v, problem %+v", i, w.Code, h, p)
		}
		// The time runs to the next cycle, plus up to half a cycle of jitter.
		retry := h.Get("Retry-After")
		if over := c.reason == "over_share"; over != (retry >= "10" && retry <= "15") || !over && retry != "" || !strings.HasSuffix(h.Get("RateLimit"), retry) {
			t.Errorf("request %d: Retry-After = %q with RateLimit %q", i, retry, h.Get("RateLimit"))
		}
	}
	admitted(t, g, map[string]int64{"a": 2, "b": 1})
}

// TestFairShareAndRules checks fair share together with rules. A request that a rule
// refuses, or that leaves before its departure, uses none of its share. A request that the
// share refuses is not counted by any rule.
func TestFairShareAndRules(t *testing.T) {
	store := denied(headgate.OverLimit, time.Second)
	s, g := fair(t, guard.Config{FairShare: share(t), Rules: []guard.Rule{product(t)}, Store: store})
	for range 5 {
		if w := s.get(t, "/v1/product", client("a")); problemOf(t, w).Reason != "over_limit" {
			t.Errorf("got response %d %s", w.Code, w.Body)
		}
	}
	admitted(t, g, map[string]int64{})
	for range 2 {
		s.get(t, "/elsewhere", client("a"))
	}
	before := len(store.ops)
	if w := s.get(t, "/v1/product", client("a")); problemOf(t, w).Reason != "over_share" || len(store.ops) != before {
		t.Errorf("got %d %s, want a refusal without a store operation", w.Code, w.Body)
	}
	synctest.Test(t, func(t *testing.T) {
		s, g := fair(t, guard.Config{FairShare: share(t), Rules: []guard.Rule{product(t)}, Store: waiting(time.Second)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/product", http.NoBody)
		r.Header = client("a")
		if s.serve(r); s.request != nil {
			t.Error("a request that was canceled while it waited reached the service")
		}
		admitted(t, g, map[string]int64{})
		if s.get(t, "/v1/product", client("b")); s.request == nil {
			t.Error("a request did not reach the service after its departure")
		}
		admitted(t, g, map[string]int64{"b": 1})
	})
}

// TestShadowShares checks that in shadow mode all requests pass, and only rules appear in
// the fields. After a reload to enforce, the units used before still count.
func TestShadowShares(t *testing.T) {
	shadow := guard.Config{
		FairShare: share(t, func(f *guard.FairShare) { f.Mode = guard.Shadow }), Rules: []guard.Rule{product(t)}, Store: allowed(),
	}
	s, g := fair(t, shadow)
	for range 5 {
		if w := s.get(t, "/v1/product", client("a")); w.Code != http.StatusTeapot || w.Header().Get("RateLimit") != `"product";r=99;t=1` {
			t.Errorf("got response %d %v", w.Code, w.Header())
		}
		if w := s.get(t, "/elsewhere", nil); w.Code != http.StatusTeapot || len(w.Header()) != 0 {
			t.Errorf("anonymous: got status %d, header %v", w.Code, w.Header())
		}
	}
	admitted(t, g, map[string]int64{"a": 2})
	shadow.FairShare = share(t)
	if err := g.Reload(shadow); err != nil {
		t.Fatal(err)
	}
	if w := s.get(t, "/v1/product", client("a")); problemOf(t, w).Reason != "over_share" {
		t.Errorf("enforced: got %d %s", w.Code, w.Body)
	}
}

// TestFairShareCost checks that an invalid cost is the client's fault, as with rules.
func TestFairShareCost(t *testing.T) {
	s, g := fair(t, guard.Config{FairShare: share(t, func(f *guard.FairShare) { f.Capacity, f.CostHeader = 40, "X-Cost" })})
	for cost, want := range map[string]int{"20": http.StatusTeapot, "41": http.StatusBadRequest, "x<b>": http.StatusBadRequest} {
		w := s.get(t, "/v1/product", http.Header{"X-Client-Id": {"a"}, "X-Cost": {cost}})
		if w.Code != want || strings.Contains(w.Body.String(), "<b>") {
			t.Errorf("a cost of %s: got %d %s, want %d", cost, w.Code, w.Body, want)
		}
	}
	s.get(t, "/v1/product", http.Header{"X-Client-Id": {"b"}, "X-Cost": {"1", "2"}}) // The service may read the other of two values.
	admitted(t, g, map[string]int64{"a": 20})
}

// TestFairShareOfTwoNames checks that the first of two header values names the client, for
// fair share as for rules. A gateway that appends its own value does not change the name.
func TestFairShareOfTwoNames(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	one := product(t, func(r *guard.Rule) { r.Policies[0].Limit = headgate.Limit{Count: 1, Per: time.Hour} })
	s, g := fair(t, guard.Config{FairShare: share(t), Rules: []guard.Rule{one}, Store: store})
	for _, c := range []struct {
		names  []string
		reason string
	}{
		{[]string{"a", "b"}, ""},
		{[]string{"a"}, "over_limit"}, // It counts as client a.
		{[]string{"b", "a"}, ""},
		{[]string{"", "b"}, "anonymous_client"},
	} {
		w := s.get(t, "/v1/product", http.Header{"X-Client-Id": c.names})
		if passed := w.Code == http.StatusTeapot; passed != (c.reason == "") || !passed && problemOf(t, w).Reason != c.reason {
			t.Errorf("a request of %q: got %d %s, want the reason %q", c.names, w.Code, w.Body, c.reason)
		}
	}
	admitted(t, g, map[string]int64{"a": 1, "b": 1})
}

// verifier accepts the token "good" for one account.
type verifier string

// Verify implements rule.Tokens.
func (v verifier) Verify(token string) (headgate.Values, bool) { return v, token == "good" }

// Lookup implements headgate.Values.
func (v verifier) Lookup(string) (string, bool) { return string(v), true }

// TestFairShareIdentity checks that a verified token or certificate names the client.
func TestFairShareIdentity(t *testing.T) {
	by := func(text string) func(*guard.FairShare) {
		return func(f *guard.FairShare) { f.Client, _ = rule.ParsePart(text) }
	}
	s, g := fair(t, guard.Config{FairShare: share(t, by("jwt:sub")), Identity: &rule.Identity{Tokens: verifier("a")}})
	for token, want := range map[string]int{"good": http.StatusTeapot, "forged": http.StatusTooManyRequests} {
		if w := s.get(t, "/v1/product", http.Header{"Authorization": {"Bearer " + token}}); w.Code != want {
			t.Errorf("a %s token: got status %d, want %d", token, w.Code, want)
		}
	}
	admitted(t, g, map[string]int64{"a": 1})

	certified, g := fair(t, guard.Config{FairShare: share(t, by("mtls_subject"))})
	for _, auth := range []tls.ClientAuthType{tls.VerifyClientCertIfGiven, tls.RequestClientCert} {
		own := certificate(t, "barley")
		server := httptest.NewUnstartedServer(certified.handler)
		roots := x509.NewCertPool()
		roots.AddCert(own.Leaf)
		server.TLS = &tls.Config{ClientAuth: auth, ClientCAs: roots, MinVersion: tls.VersionTLS13}
		server.StartTLS()
		server.Client().Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{own}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/product", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		server.Close()
		if verified := auth == tls.VerifyClientCertIfGiven; verified != (resp.StatusCode == http.StatusTeapot) {
			t.Errorf("client authentication %v: got status %d", auth, resp.StatusCode)
		}
	}
	admitted(t, g, map[string]int64{`CN=barley,O=Farms\, Ltd`: 1})
}

// TestFairShareHostileNames checks that a client's name is not echoed to it, and is escaped
// in names.
func TestFairShareHostileNames(t *testing.T) {
	s, g := fair(t, guard.Config{FairShare: share(t, func(f *guard.FairShare) { f.Capacity, f.Weights = 4, nil })})
	for _, name := range []string{"<b>\x80", "\xc3\x28", strings.Repeat("<b>", 3000), "\u202e<b>", `"><b>`} {
		for range 6 {
			w := s.get(t, "/v1/product", client(name))
			if strings.Contains(w.Body.String(), "<b>") {
				t.Errorf("the name %q is in the body: %s", name, w.Body)
			}
			for _, values := range w.Header() {
				if strings.Contains(strings.Join(values, ""), "<b>") {
					t.Errorf("the name %q is in the header: %v", name, w.Header())
				}
			}
		}
	}
	shares, _ := g.Shares()
	for _, one := range shares.Clients {
		if len(one.Client) > rule.MaxClientName || strings.ToValidUTF8(one.Client, "?") != one.Client || strings.Contains(one.Client, "\u202e") {
			t.Errorf("got the escaped name %q", one.Client)
		}
	}
}

// TestFairShareAllocations checks that a request with fair share needs no more allocations
// than a request with a rule.
func TestFairShareAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	ample := share(t, func(f *guard.FairShare) { f.Capacity = 1 << 40 })
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	cost := func(c guard.Config, style fields.Style, name string) float64 {
		c.Clock = func() headgate.Instant { return 0 }
		g, err := guard.New(c)
		if err != nil {
			t.Fatal(err)
		}
		h := httplimit.New(g, httplimit.Options{Style: style})(nothing)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
		r.Header = client(name)
		w := bare{}
		return testing.AllocsPerRun(200, func() {
			clear(w)
			h.ServeHTTP(w, r)
		})
	}
	for style, want := range map[fields.Style]float64{fields.Draft: 1, fields.XRateLimit: 1, fields.None: 0} {
		if n := cost(guard.Config{FairShare: ample}, style, "a"); n != want {
			t.Errorf("allowed in style %v: got %v allocations, want %v", style, n, want)
		}
		byRule := cost(guard.Config{Store: denied(headgate.OverLimit, time.Second), Rules: []guard.Rule{product(t)}}, style, "a")
		for _, name := range []string{"a", ""} {
			// The store of these rules records its Ops, which allocates now and then.
			if n := cost(guard.Config{FairShare: share(t)}, style, name); n > byRule {
				t.Errorf("refused in style %v: got %v allocations, want at most those of a rule, %v", style, n, byRule)
			}
		}
	}
}
