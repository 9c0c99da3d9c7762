package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report"
)

// watchedInstance gives a fleet of one instance, and a context that ends with the seventh answer.
func watchedInstance(t *testing.T) (context.Context, *Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	var asked atomic.Uint64
	one := 4.0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/live":
			n := asked.Add(1)
			if n > 6 {
				cancel()
			}
			_ = json.NewEncoder(w).Encode(admin.Live{
				Instance: "hg-1", Sentence: "All served: 5 requests/s.", Sequence: 1 + n%3, Window: 5, RulesTotal: 1, Now: time.Unix(100, 0),
				Rules: []admin.LiveRule{{Name: "search", Mode: "enforce", Refused: 2}},
			})
		case "/api/v1/history":
			if r.URL.Query().Get("series") != "rule.search.refused" || r.URL.Query().Get("since") != "80" {
				t.Errorf("the history is requested with %s", r.URL.RawQuery)
			}
			_ = json.NewEncoder(w).Encode(admin.History{Series: map[string][]*float64{"rule.search.refused": {&one, &one}}})
		default:
			_ = json.NewEncoder(w).Encode(admin.Top{TopKeys: report.TopKeys{Total: 9, Keys: []report.TopKey{{Rule: "search", Key: "acme", Refusals: 9}}}})
		}
	}))
	t.Cleanup(s.Close)
	return ctx, &Fleet{Instance: Instance{Admin: strings.TrimPrefix(s.URL, "http://")}}
}

// TestWatchStatusAndTop: both show the sentence of the instance, again and again, and say when the instance has restarted.
func TestWatchStatusAndTop(t *testing.T) {
	var out, errors bytes.Buffer
	ctx, f := watchedInstance(t)
	if err := f.WatchStatus(ctx, &Watched{Every: time.Millisecond, Out: &out, Errors: &errors}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "All served: 5 requests/s."); n < 6 || !strings.Contains(out.String(), "██") {
		t.Errorf("the sentence is there %d times:\n%s", n, out.String())
	}
	if !strings.Contains(errors.String(), "has restarted") {
		t.Errorf("the messages are %s", errors.String())
	}
	out.Reset()
	ctx, f = watchedInstance(t)
	if err := f.WatchTop(ctx, &Watched{Every: time.Millisecond, Out: &out, Errors: &errors}, "", 5); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "All served") || !strings.Contains(out.String(), "acme") {
		t.Errorf("the keys are\n%s", out.String())
	}
}
