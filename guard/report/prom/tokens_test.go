package prom

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestTokens scrapes a guard with answers that state their tokens, and one without usage, of which one line is logged.
func TestTokens(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	rules := []guard.Rule{{
		Rule:       rule.Rule{Name: "chat", Key: []rule.Part{all}},
		Policies:   []headgate.Policy{{Limit: headgate.Limit{Count: 10_000, Per: time.Hour}}},
		SettleBody: &tokens.Settle{API: tokens.OpenAI}, Estimate: &tokens.Estimate{Output: 100, Fixed: true}, MaxBody: 1000,
		OnSpent: guard.StopAnswer,
	}}
	counted := report.New(report.Config{})
	defer counted.Close()
	g, err := guard.New(guard.Config{Rules: rules, Store: store, Observer: counted.Follow(rules)})
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{
		`{"usage":{"prompt_tokens":20,"completion_tokens":30,"total_tokens":50,"prompt_tokens_details":{"cached_tokens":5}}}`, `{"id":"x"}`,
	} {
		ticket := guard.Ticket{Answer: new(guard.Answer)}
		req := headgate.Request{Method: "POST", Path: "/v1/chat/completions"}
		g.Begin(ticket.Answer)
		ticket.Answer.ReadBody(&req, new(guard.BodyFacts), []byte("{}"), false)
		if err := g.Admit(t.Context(), &req, &ticket); err != nil {
			t.Fatal(err)
		}
		ticket.Forward()
		ticket.Scan().Begin(200, "application/json", "")
		ticket.Scan().Write([]byte(answer))
		ticket.Done(guard.Outcome{Status: 200})
	}
	registry, err := NewRegistry(Config{Report: counted, Guard: g})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{
		`headgate_rule_tokens_total{kind="input",rule="chat"} 15`, `headgate_rule_tokens_total{kind="cached",rule="chat"} 5`,
		`headgate_rule_tokens_total{kind="output",rule="chat"} 30`, `headgate_rule_answers_total{rule="chat",usage="stated"} 1`,
		`headgate_rule_answers_total{rule="chat",usage="no_usage"} 1`, `headgate_rule_answers_total{rule="chat",usage="slow"} 0`,
		`headgate_rule_estimated_units_total{rule="chat"} 100`, `headgate_rule_actual_units_total{rule="chat"} 50`,
		`headgate_rule_streams_stopped_total{rule="chat"} 0`, `headgate_request_bodies_read_total{seen="whole"} 2`,
		`headgate_rule_estimates_total{rule="chat"} 1`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+want) {
			t.Errorf("missing metric %s", want)
		}
	}
}
