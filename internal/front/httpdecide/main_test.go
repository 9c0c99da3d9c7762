package httpdecide

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/open"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serviceOf makes a service with the rules of a configuration.
func serviceOf(tb testing.TB, text string) *Service {
	tb.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		tb.Fatal(err)
	}
	store, err := open.Store(c, open.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	described, err := open.GuardConfig(c, store)
	if err != nil {
		tb.Fatal(err)
	}
	g, err := guard.New(described)
	if err != nil {
		tb.Fatal(err)
	}
	return New(g, slog.New(slog.DiscardHandler))
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
