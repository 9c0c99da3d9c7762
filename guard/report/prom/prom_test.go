package prom

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// scraped returns the metrics of a report in which every metric has a value.
func scraped(t *testing.T) string {
	t.Helper()
	rules := []guard.Rule{{
		Rule:     rule.Rule{Name: `odd "name"\`},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 500, Per: 2 * time.Second}}},
	}}
	counted := report.New(report.Config{})
	observer := counted.FollowConfig(&guard.Config{Rules: rules, FairShare: &guard.FairShare{Mode: guard.Shadow}})
	t.Cleanup(counted.Close)
	for v := headgate.Allow; v <= headgate.Deny; v++ {
		for _, reason := range headgate.Reasons() {
			observer.Observe(nil, &guard.Answer{Results: []guard.Result{{Rule: &rules[0], Decision: headgate.Decision{Verdict: v, Reason: reason}}}})
		}
	}
	observer.Observe(nil, &guard.Answer{Results: []guard.Result{{Rule: &rules[0], Fallback: true}}})
	observer.Observe(nil, &guard.Answer{Results: []guard.Result{{Rule: &rules[0], Fallback: true}}, StoreError: guard.ErrCallerGone})
	for _, reason := range []headgate.Reason{headgate.WithinLimit, headgate.OverShare, headgate.AnonymousClient, headgate.AnonymousClient} {
		d := headgate.Decision{Reason: reason}
		if reason != headgate.WithinLimit {
			d.Verdict = headgate.Deny
		}
		observer.Observe(nil, &guard.Answer{Results: []guard.Result{{Rule: &rules[0], Stage: guard.FairShareName, Decision: d}}})
	}
	counted.Traffic.Answered(report.OriginService, 200)
	counted.Traffic.Answered(report.OriginHeadgate, 429)
	counted.Traffic.Answered(report.OriginFailure, 502)
	counted.Traffic.ServiceTime.Observe(30 * time.Millisecond)
	counted.Traffic.RequestTime.Observe(time.Hour)
	counted.Traffic.UpstreamFailed(report.UpstreamReset)
	for range 3 {
		counted.Traffic.Served(report.PathFast)
	}
	counted.Traffic.Served(report.PathExpect)
	counted.Traffic.Decision.Observe(3 * time.Microsecond)
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := NewRegistry(Config{Report: counted, Store: store.Stats, Shared: sharedStore, Shares: shared, Front: func() Front { return Front{Connections: 3, CertificateExpires: time.Unix(1e9, 0)} }, Version: "v0.1.0", Commit: "abc", Go: "go1.26"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// sharedStore has one server of each kind.
func sharedStore() report.Shared {
	return report.Shared{
		Nodes: []report.Node{
			{Name: "10.0.0.1:6379", Calls: 2, Decisions: 9, Waiting: 3},
			{Name: "10.0.0.2:11211", State: breaker.Open, Opened: 1, LastFailure: report.Failure{At: time.Unix(1e9, 5), Text: "EOF"}, ClockKnown: true, ClockOffset: -1500 * time.Millisecond},
		},
		Ahead: &report.Ahead{Granted: 10, Spent: 7, Denied: 4},
	}
}

// shared returns the shares of three clients. One client has a name that no guard
// accepts.
func shared() (Shares, bool) {
	return Shares{Shadow: true, Shares: fairshare.Shares{
		Cycle: 7, Length: 250 * time.Millisecond, Capacity: 40, Admitted: 3, LastAdmitted: 37, LastCapacity: 41,
		Clients: []fairshare.Share{
			{Client: "A", Default: 10, Demand: 2, Size: 5, Lent: 5, Admitted: 1, AdmittedCounter: 12, Lasting: true},
			{Client: `B "the \ big"`, Default: 10, Demand: 15, Size: 15, Borrowed: 5, AdmittedCounter: 13, RefusedTotal: 6},
			{Client: "\xff"},
		},
	}}, true
}

func TestMetrics(t *testing.T) {
	text := scraped(t)
	for _, want := range []string{
		`headgate_decisions_total{mode="enforce",reason="over_limit",rule="odd \"name\"\\",verdict="deny"} 1`,
		`headgate_rule_info{algorithm="token_bucket",limits="500/2s",mode="enforce",rule="odd \"name\"\\"} 1`,
		`headgate_decision_seconds_bucket{le="2.5e-06"} 0`,
		`headgate_decision_seconds_bucket{le="5e-06"} 1`,
		`headgate_decision_seconds_count 1`,
		`headgate_store_up{node="10.0.0.1:6379"} 1`,
		`headgate_store_up{node="10.0.0.2:11211"} 0`, `headgate_store_last_failure_timestamp_seconds{node="10.0.0.2:11211"} 1e+09`,
		`headgate_store_decisions_total{node="10.0.0.1:6379"} 9`,
		`headgate_store_waiting{node="10.0.0.1:6379"} 3`,
		`headgate_store_clock_offset_seconds{node="10.0.0.2:11211"} -1.5`,
		`headgate_prefetch_units_total{state="spent"} 7`,
		`headgate_denied_locally_total 4`,
		`headgate_proxy_requests_total{code="2xx"} 1`,
		`headgate_proxy_requests_total{code="canceled"} 0`, `headgate_proxy_requests_total{code="5xx"} 1`,
		`headgate_proxy_answers_total{code="2xx",origin="service"} 1`, `headgate_proxy_answers_total{code="4xx",origin="headgate"} 1`,
		`headgate_proxy_answers_total{code="5xx",origin="service_failed"} 1`, `headgate_proxy_answers_total{code="4xx",origin="service"} 0`,
		`headgate_upstream_seconds_bucket{le="0.02"} 0`, `headgate_upstream_seconds_bucket{le="0.05"} 1`, `headgate_upstream_seconds_sum 0.03`,
		`headgate_proxy_request_seconds_bucket{le="60"} 0`, `headgate_proxy_request_seconds_bucket{le="+Inf"} 1`,
		`headgate_proxy_requests_by_path_total{path="fast",reason=""} 3`,
		`headgate_proxy_requests_by_path_total{path="standard",reason="expect"} 1`,
		`headgate_proxy_requests_by_path_total{path="standard",reason="off"} 0`,
		`headgate_upstream_errors_total{kind="reset"} 1`,
		`headgate_build_info{commit="abc",goversion="go1.26",version="v0.1.0"} 1`,
		`headgate_fallbacks_total{fallback="deny",rule="odd \"name\"\\"} 1`, "headgate_abandoned_requests_total 1",
		"headgate_unmatched_requests_total 0", "headgate_proxy_in_flight 0", "headgate_waiting 0",
		"headgate_store_places ", "headgate_store_places_used 0", "headgate_store_block_bytes ",
		"headgate_store_block_used_bytes 0", "headgate_store_evicted_total 0", "headgate_store_refused_total 0",
		`headgate_decisions_total{mode="shadow",reason="over_share",rule="fair_share",verdict="deny"} 1`,
		`headgate_decisions_total{mode="shadow",reason="anonymous_client",rule="fair_share",verdict="deny"} 2`,
		"headgate_share_capacity_units 40", "headgate_share_cycle_seconds 0.25", "headgate_share_shadow 1",
		"headgate_share_clients 3", "headgate_share_lasting_clients 1", "headgate_share_last_admitted_units 37", "headgate_share_last_capacity_units 41",
		"headgate_share_anonymous_total 2",
		`headgate_share_default_units{client="A"} 10`, `headgate_share_size_units{client="A"} 5`,
		`headgate_share_demand_units{client="A"} 2`, `headgate_share_lent_units{client="A"} 5`,
		`headgate_share_borrowed_units{client="B \"the \\ big\""} 5`, `headgate_share_admitted_units_total{client="A"} 12`,
		`headgate_share_refused_units_total{client="B \"the \\ big\""} 6`, `headgate_share_size_units{client="\"\\xff\""} 0`,
		"go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("missing metric %s", want)
		}
	}
}

// TestNoFairShare checks that an instance without fair share shows no metrics of it,
// also after a reload has removed fair share.
func TestNoFairShare(t *testing.T) {
	counted := report.New(report.Config{})
	defer counted.Close()
	registry, err := NewRegistry(Config{Report: counted, Shares: func() (Shares, bool) { return Shares{}, false }})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if text := w.Body.String(); w.Code != http.StatusOK || strings.Contains(text, "headgate_share") || strings.Contains(text, "fair_share") {
		t.Errorf("got status %d, and metrics of fair share:\n%s", w.Code, text)
	}
}

// promtool accepts the names, types and help texts of the metrics.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: install Debian's package prometheus, or run make deps")
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scraped(t))
	out := new(bytes.Buffer)
	check.Stdout, check.Stderr = out, out
	if err := check.Run(); err != nil || out.Len() > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
