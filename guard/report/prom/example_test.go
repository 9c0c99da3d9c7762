package prom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// An http.Handler serves the metrics of a report.
func Example() {
	counted := report.New(report.Config{})
	defer counted.Close()
	counted.Traffic.Answered(report.OriginService, http.StatusOK)
	registry, err := prom.NewRegistry(prom.Config{Report: counted})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	prom.Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, `headgate_proxy_requests_total{code="2xx"}`) {
			fmt.Print(line)
		}
	}
	// Output: headgate_proxy_requests_total{code="2xx"} 1
}

// A program with its own rules exports the metrics of its guard.
func ExampleGuard() {
	all, err := rule.ParsePart("all")
	if err != nil {
		panic(err)
	}
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	counted := report.New(report.Config{})
	defer counted.Close()
	c := guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "a", Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
	}}}
	c.Observer = counted.FollowConfig(&c)
	g, err := guard.New(c)
	if err != nil {
		panic(err)
	}
	var answer guard.Answer
	for range 3 {
		if err := g.Decide(context.Background(), &headgate.Request{Path: "/", Cost: 1}, &answer); err != nil {
			panic(err)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.Guard(g))
	w := httptest.NewRecorder()
	prom.Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "headgate_decisions_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// headgate_decisions_total{mode="enforce",reason="over_limit",rule="a",verdict="deny"} 2
	// headgate_decisions_total{mode="enforce",reason="within_limit",rule="a",verdict="allow"} 1
}

// A program that calls a provider exports the metrics of its pacers.
func ExamplePacers() {
	plan, err := pace.EvenPlan(1000, time.Second, 1, 0)
	if err != nil {
		panic(err)
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: pace.Static(plan)})
	if err != nil {
		panic(err)
	}
	defer mail.Close()
	if err := mail.Acquire(context.Background(), time.Minute); err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.Pacers(func() []pace.Stats { return []pace.Stats{mail.Stats()} }))
	w := httptest.NewRecorder()
	prom.Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "headgate_pace_limit") || strings.HasPrefix(line, "headgate_pace_acquired") {
			fmt.Print(line)
		}
	}
	// Output:
	// headgate_pace_acquired_total{provider="mail"} 1
	// headgate_pace_limit{provider="mail"} 1000
}
