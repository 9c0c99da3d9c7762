package rls_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/front/rls"
)

// TestWebPagesAreRefused: a page in a browser cannot use up a limit, whatever its origin. Programs
// decide as before, with any content type.
func TestWebPagesAreRefused(t *testing.T) {
	s := serve(t, rls.Options{}, domain(node("k", "", counted(2, time.Minute))))
	const body = `{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`
	for _, row := range []struct {
		story string
		lines []string
		want  int
	}{
		{"a page of another site", []string{"Origin", "http://a.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a page of the same site", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"a page after DNS rebinding", []string{"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}, http.StatusForbidden},
		{"an old browser", []string{"Origin", "http://example.com"}, http.StatusForbidden},
		{"a sandboxed page", []string{"Origin", "null", "Content-Type", "text/plain"}, http.StatusForbidden},
		{"a page without an origin", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"an empty origin", []string{"Origin", ""}, http.StatusForbidden},
		{"curl", []string{"Content-Type", "application/x-www-form-urlencoded"}, http.StatusOK},
		{"a program", []string{"Content-Type", "application/json"}, http.StatusOK},
		{"the third counted request", nil, http.StatusTooManyRequests},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/json", strings.NewReader(body))
		for i := 0; i < len(row.lines); i += 2 {
			r.Header.Set(row.lines[i], row.lines[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != row.want {
			t.Errorf("%s: got status %d, want %d: %s", row.story, w.Code, row.want, w.Body)
		}
	}
}
