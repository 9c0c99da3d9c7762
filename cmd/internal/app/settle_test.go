package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// TestSettleByTwoLines: an answer that states its cost twice keeps its estimate, and the metric counts it: headgate neither adds costs nor
// chooses one. One list in one line is the same. Headers and trailers, on both data planes.
func TestSettleByTwoLines(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		costs := r.URL.Query()["cost"]
		if r.URL.Query().Has("trailer") {
			w.Header().Set("Trailer", "X-Tokens")
			fmt.Fprint(w, "body")
		}
		w.Header()["X-Tokens"] = costs
	}))
	t.Cleanup(service.Close)
	for _, plane := range []string{"fast", "standard"} {
		t.Run(plane, func(t *testing.T) {
			c, err := config.Parse("test.yaml", fmt.Appendf(nil, `version: 1
max_memory: 1MiB
rules: [{name: tokens, key: [all], algorithm: fixed_window, limits: [1000/1d], cost: 20, settle: header:X-Tokens}]
proxy: {listen: "127.0.0.1:0", upstream: %q, data_plane: %s}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, service.URL, plane))
			if err != nil {
				t.Fatal(err)
			}
			o := options(t)
			o.Config = c
			i := startServer(t, o)
			returned, estimates := 0, 0
			for query, cost := range map[string]int{
				"cost=5": 5, "cost=5&cost=7": 20, "cost=5,7": 20, "cost=5&cost=5": 20,
				"trailer&cost=6": 6, "trailer&cost=6&cost=7": 20,
			} {
				if status, _ := get(t, i.Addresses().Proxy+"/?"+query); status != http.StatusOK {
					t.Fatalf("%s: got %d", query, status)
				}
				if returned += 20 - cost; cost == 20 {
					estimates++
				}
				want := fmt.Sprintf("headgate_rule_estimates_total{rule=\"tokens\"} %d\n", estimates)
				eventually(t, "the end of "+query, func() bool {
					text := metricsOf(t, i.Addresses().Health)
					return strings.Contains(text, want) &&
						strings.Contains(text, fmt.Sprintf("headgate_rule_units_returned_total{rule=\"tokens\"} %d\n", returned))
				})
			}
		})
	}
}
