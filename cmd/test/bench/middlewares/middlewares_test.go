package middlewares

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// TestSides checks that each side applies the same limit to each client separately, and
// sends the header fields of the limit.
func TestSides(t *testing.T) {
	for _, m := range All() {
		if m.Kind == contest.Floor {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			h, err := m.New(limiters.Limit{Count: 3, Per: time.Hour, Burst: 3}, Service())
			if err != nil {
				t.Fatal(err)
			}
			requests := Requests(16)
			if got := Serve(h, requests, 0, 48); got.Allowed != 48 {
				t.Errorf("3 requests of each of 16 clients: got %+v, want all allowed", got)
			}
			if got := Serve(h, requests, 0, 32); got.Denied != 32 {
				t.Errorf("2 further requests of each client: got %+v, want all denied", got)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, Requests(32)[31])
			if count := fieldsOf(w.Header()); w.Code != http.StatusOK || count == 0 {
				t.Errorf("first request of a new client: got status %d and header %v, want 200 and the fields of a limit", w.Code, w.Header())
			}
		})
	}
}

// TestFairShare checks that the capacity is one Burst for each client, and that responses
// have the header fields of the share.
func TestFairShare(t *testing.T) {
	h, err := FairShare(16).New(limiters.Limit{Count: 3, Per: time.Hour, Burst: 3}, Service())
	if err != nil {
		t.Fatal(err)
	}
	requests := Requests(16)
	if got := Serve(h, requests, 0, 48); got.Allowed != 48 {
		t.Errorf("3 requests of each of 16 clients: got %+v, want all allowed", got)
	}
	if got := Serve(h, requests, 0, 32); got.Denied != 32 {
		t.Errorf("2 further requests of each client: got %+v, want all denied", got)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, Requests(32)[31])
	if count := fieldsOf(w.Header()); w.Code != http.StatusTooManyRequests || count == 0 {
		t.Errorf("first request of a new client: got status %d and header %v, want 429 and the fields of a share", w.Code, w.Header())
	}
}

// fieldsOf counts the header fields that describe a limit.
func fieldsOf(h http.Header) (n int) {
	for name := range h {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			n++
		}
	}
	return n
}
