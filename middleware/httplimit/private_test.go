package httplimit_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// reporting is a stage that reads a field of the answer that is for it alone.
type reporting struct{ read chan string }

func (reporting) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "reporting"}} }

func (reporting) Facts() guard.Facts {
	return guard.Facts{Answer: []string{"X-Work"}, Private: []string{"X-Work"}}
}

func (reporting) Enter(*guard.Pass) headgate.Decision {
	return headgate.Decision{Reason: headgate.WithinLimit}
}

func (s reporting) Leave(_ *guard.Pass, o *guard.Outcome) {
	value, _ := o.Header("X-Work")
	s.read <- value
}

// TestPrivateFieldsOfHints checks that a field that is set before a 103 reaches the stage, and no client.
func TestPrivateFieldsOfHints(t *testing.T) {
	s := reporting{make(chan string, 1)}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{s}})
	if err != nil {
		t.Fatal(err)
	}
	limit := httplimit.New(g, httplimit.Options{Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Work", "cpu=1s")
		w.WriteHeader(http.StatusEarlyHints)
	})))
	defer server.Close()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			if status != http.StatusEarlyHints || len(h) > 0 {
				t.Errorf("the client got %d with %v, want 103 without fields", status, h)
			}
			return nil
		},
	})
	if h := headerOf(ctx, t, server); h["X-Work"] != nil {
		t.Errorf("the client got %v", h)
	}
	if read := <-s.read; read != "cpu=1s" {
		t.Errorf("the stage read %q", read)
	}
}

// TestPrivateFieldsOfRequests checks that a service does not see a field of answers that a client sends: a
// service that echoes it would tell the stage what the client wants.
func TestPrivateFieldsOfRequests(t *testing.T) {
	s := reporting{make(chan string, 1)}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{s}})
	if err != nil {
		t.Fatal(err)
	}
	h := httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Work"] = r.Header["X-Work"]
		w.Header()["X-Seen"] = r.Header["X_work"]
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header = http.Header{"X-Work": {"cpu=1h"}, "X_work": {"cpu=1h"}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if read := <-s.read; read != "" || len(w.Header()["X-Seen"]) > 0 {
		t.Errorf("the stage read %q, and the service saw %q", read, w.Header()["X-Seen"])
	}
}

// headerOf makes a request with a context, and gives the header of the answer.
func headerOf(ctx context.Context, t *testing.T, server *httptest.Server) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Header
}
