package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/front/openapi"
)

// TestHandler: the document comes whole, with its type. HEAD and refused methods have no document.
func TestHandler(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(openapi.Pattern, openapi.Handler())
	server := httptest.NewServer(mux)
	defer server.Close()
	for method, want := range map[string]int{
		http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodPut: 405, http.MethodDelete: 405, http.MethodOptions: 405,
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/openapi.json", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if err := resp.Write(&body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || strings.Contains(body.String(), openapi.Document()) != (method == http.MethodGet) {
			t.Errorf("%s: got %d, want %d: %.300s", method, resp.StatusCode, want, body.String())
		}
		h := resp.Header
		if want == http.StatusOK && (h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cache-Control") != "no-cache") {
			t.Errorf("%s: the fields are %v", method, h)
		}
		if want == http.StatusMethodNotAllowed && h.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", method, h.Get("Allow"))
		}
	}
}

// TestReasons: the document names every reason that headgate server gives, and no other one.
func TestReasons(t *testing.T) {
	var parsed struct {
		Components struct {
			Schemas struct {
				Answer struct {
					Properties struct {
						Reason struct {
							Description string `json:"description"`
						} `json:"reason"`
					} `json:"properties"`
				} `json:"Answer"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(openapi.Document()), &parsed); err != nil {
		t.Fatal(err)
	}
	named := strings.FieldsFunc(parsed.Components.Schemas.Answer.Properties.Reason.Description, func(c rune) bool {
		return c != '_' && (c < 'a' || c > 'z')
	})
	// A wait is refused over HTTP. The server refuses files whose rules need the end of requests.
	elsewhere := []headgate.Reason{
		headgate.Scheduled, headgate.ThrottleFull, headgate.ThrottleEvicted, headgate.ThrottleDeadline, headgate.InFlight,
	}
	for _, reason := range headgate.Reasons() {
		if slices.Contains(named, reason.String()) == slices.Contains(elsewhere, reason) {
			t.Errorf("%s: the document names it: %t", reason, slices.Contains(named, reason.String()))
		}
	}
}
