package proxy

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestFailureLogNamesTheRequest checks the log line about a failing upstream. The line has
// the request's id, method and path, escaped and bounded, but no query. Further failures
// within ten seconds add no line.
func TestFailureLogNamesTheRequest(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct{ name, target, path string }{
		{"plain", "/v1/product?token=secret", "/v1/product"},
		{"escaped", "/v1/a%22b%C3%A9?token=secret", "/v1/a%22b%C3%A9"},
		{"long", "/" + strings.Repeat("a", 5000), "/" + strings.Repeat("a", maxLoggedPath-1) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logged logs.Text
			p := newProxy(t, allowed(), gone.URL, NewTransport(0), func(p *Config) { p.Log = slog.New(slog.NewJSONHandler(&logged, nil)) })
			_, at := start(t, p, nil, ServerConfig{RequestID: "X-Request-Id"})
			f := &front{url: "http://" + at, client: httpClient(t, nil, http1Only)}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+c.target, http.NoBody)
			resp, _ := f.do(t, req)
			again, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+c.target, http.NoBody)
			f.do(t, again)
			var line struct {
				Message   string `json:"msg"`
				RequestID string `json:"request_id"`
				Method    string `json:"method"`
				Path      string `json:"path"`
				Upstream  string `json:"upstream"`
				Error     string `json:"error"`
			}
			if err := json.Unmarshal([]byte(logged.String()), &line); err != nil {
				t.Fatalf("%v: want one log line, got\n%s", err, logged.String())
			}
			if line.RequestID == "" || line.RequestID != resp.Header.Get("X-Request-Id") || line.Method != http.MethodPost || line.Path != c.path {
				t.Errorf("id %q, method %q, path %q, want id %q, POST, %q", line.RequestID, line.Method, line.Path, resp.Header.Get("X-Request-Id"), c.path)
			}
			if line.Upstream == "" || line.Error == "" || strings.Contains(logged.String(), "secret") {
				t.Errorf("the log line lacks a field or contains a secret: %s", logged.String())
			}
		})
	}
}

// TestFailureLogCutsTheMethod checks that a long method is truncated. A method may be as
// long as a header.
func TestFailureLogCutsTheMethod(t *testing.T) {
	if got := truncated(strings.Repeat("M", 1<<20), maxLoggedMethod); got != strings.Repeat("M", maxLoggedMethod)+"…" {
		t.Errorf("got %d bytes, want %d and an ellipsis", len(got), maxLoggedMethod)
	}
}
