package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// sharing configures a proxy that shares 4 units per second between clients a and b, in
// addition to the rule of the other tests. Its clock does not advance.
func sharing(t *testing.T, store headgate.Store) func(*Config) {
	t.Helper()
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Weights = map[string]int64{"a": 1, "b": 1}
	g, err := guard.New(guard.Config{
		FairShare: f, Rules: []guard.Rule{product(t)}, Store: store, Clock: func() headgate.Instant { return 1e9 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Guard = g }
}

// TestFairShare checks that the upstream receives what each client's share allows, and that
// the access log gives the reason for refusals.
func TestFairShare(t *testing.T) {
	reached := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer upstream.Close()
	at, lines := logging(t, newProxy(t, allowed(), upstream.URL, http.DefaultTransport, sharing(t, allowed())), ServerConfig{})
	for i, c := range []struct {
		path, client string
		want         logged
	}{
		{"/elsewhere", "a", logged{Status: 200, Verdict: "allow", Reason: "within_limit", Rule: "fair_share"}},
		{"/v1/product", "b", logged{Status: 200, Verdict: "allow", Reason: "within_limit", Rule: "fair_share"}},
		{"/v1/product", "a", logged{Status: 200, Verdict: "allow", Reason: "within_limit", Rule: "fair_share"}},
		{"/v1/product", "a", logged{Status: 429, Verdict: "deny", Reason: "over_share", Rule: "fair_share"}},
		{"/elsewhere", "", logged{Status: 429, Verdict: "deny", Reason: "anonymous_client", Rule: "fair_share"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Client-Id", c.client)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		line := last(t, i+1, lines)
		if got := (logged{Status: line.Status, Verdict: line.Verdict, Reason: line.Reason, Rule: line.Rule}); got != c.want {
			t.Errorf("request %d: %+v, want %+v", i, got, c.want)
		}
	}
	if reached != 3 {
		t.Errorf("the upstream was reached %d times, want 3", reached)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestClientLeavesItsShare checks that a client that disconnects while it waits for a rule
// uses none of its share.
func TestClientLeavesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxy(t, allowed(), "http://upstream", new(departed), sharing(t, waiting(time.Hour)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/product", http.NoBody)
		r.Header.Set("X-Client-Id", "a")
		abandoned(t, func() { p.ServeHTTP(httptest.NewRecorder(), r) })
		if shares, ok := p.guard.Shares(); !ok || shares.Admitted != 0 {
			t.Errorf("got shares %+v", shares)
		}
	})
}
