package httpdecide

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// serviceOf makes a service with the rules of a configuration.
func serviceOf(tb testing.TB, text string) *Service {
	tb.Helper()
	return New(guards.New(tb, text), slog.New(slog.DiscardHandler))
}

// post sends a body, and gives the status and the answer.
func (s *Service) post1(tb testing.TB, body string) (int, string) {
	tb.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodPost, Pattern, strings.NewReader(body)))
	return w.Code, strings.TrimSuffix(w.Body.String(), "\n")
}

// subrequest sends a subrequest of a trusted peer. Each field is NAME: VALUE.
func (s *Service) subrequest(tb testing.TB, query string, lines ...string) *httptest.ResponseRecorder {
	tb.Helper()
	return s.subrequestOf(tb, "10.0.0.1:999", query, lines...)
}

func (s *Service) subrequestOf(tb testing.TB, peer, query string, lines ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, Pattern+"?"+query, http.NoBody)
	r.RemoteAddr = peer
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}
