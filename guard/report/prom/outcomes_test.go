package prom

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestOutcomes scrapes a guard whose requests have slots, and a cost that the service states.
func TestOutcomes(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	part, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	rules := []guard.Rule{{
		Rule:     rule.Rule{Name: "tokens", Key: []rule.Part{part}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Hour}}},
		Cost:     10, InFlight: 5, Settle: "X-Cost",
	}}
	counted := report.New(report.Config{})
	defer counted.Close()
	g, err := guard.New(guard.Config{Rules: rules, Store: store, Observer: counted.Follow(rules)})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"4", "17", "none", ""} {
		ticket := guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), &headgate.Request{IP: netip.MustParseAddr("192.0.2.1")}, &ticket); err != nil {
			t.Fatal(err)
		}
		if value != "" { // The last request stays in flight.
			ticket.Done(guard.Outcome{Status: 200, Header: func(string) (string, bool) { return value, true }})
		}
	}
	registry, err := NewRegistry(Config{Report: counted, Guard: g})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{
		`headgate_rule_in_flight{rule="tokens"} 1`, `headgate_rule_units_returned_total{rule="tokens"} 6`,
		`headgate_rule_units_charged_total{rule="tokens"} 7`, `headgate_rule_estimates_total{rule="tokens"} 1`,
		`headgate_rule_info{algorithm="token_bucket",limits="100/1h, 5 in flight",mode="enforce",rule="tokens"} 1`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+want) {
			t.Errorf("missing metric %s", want)
		}
	}
}
