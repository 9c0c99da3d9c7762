package report

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// TestLinesNameTheRequest: a line has the instance, the decision and the request, and nothing of a client breaks it or makes it long.
func TestLinesNameTheRequest(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		request *headgate.Request
		want    map[string]any // nil: no field
	}{
		"a usual request": {
			&headgate.Request{ID: "7f", Method: "GET", Authority: "API.example.com:8080", Host: "api.example.com", Path: "/a b"},
			map[string]any{"request_id": "7f", "method": "GET", "host": "API.example.com:8080", "path": "/a b"},
		},
		"a front without ids and authorities": {
			&headgate.Request{Method: "GET", Host: "api.example.com", Path: "/"},
			map[string]any{"request_id": nil, "method": "GET", "host": "api.example.com", "path": "/"},
		},
		"a request that is not known": {nil, map[string]any{"request_id": nil, "method": nil, "host": nil, "path": nil}},
		"hostile texts": {
			&headgate.Request{Method: "G\"}\n", Authority: "a\u202egro", Path: "/\x1b[2J\xff\\"},
			map[string]any{"method": `G\"}\n`, "host": `a\u202egro`, "path": `/\x1b[2J\xff\\`},
		},
		"long texts": {
			&headgate.Request{ID: long, Method: long, Authority: long, Path: "/" + strings.Repeat("é", 1<<10)},
			map[string]any{
				"request_id": long[:mostID] + "...", "method": long[:mostMethod] + "...", "host": long[:mostHost] + "...",
				"path": "/" + strings.Repeat("é", (mostPath-1)/2) + "...",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := New(Config{Log: slog.New(slog.NewJSONHandler(&out, nil)), Instance: "eu-1"})
			rules := []guard.Rule{{Rule: rule.Rule{Name: "a"}}}
			answer := &guard.Answer{Verdict: headgate.Deny, Results: []guard.Result{{
				Rule: &rules[0], Policy: "a", Decision: headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverLimit},
			}}}
			r.Follow(rules).Observe(c.request, answer)
			r.Close()
			line := map[string]any{}
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("%v in %q", err, out.String())
			}
			c.want["instance"], c.want["decision"] = "eu-1", string(answer.DecisionID().AppendTo(nil, "eu-1"))
			for field, want := range c.want {
				if line[field] != want {
					t.Errorf("%s is %q, want %q", field, line[field], want)
				}
			}
		})
	}
}
