package middlewares

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
)

// TestSides shows that every side counts each client for itself, to the same
// limit, and tells it so.
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
				t.Errorf("three of each of 16 clients: got %+v, want all allowed", got)
			}
			if got := Serve(h, requests, 0, 32); got.Denied != 32 {
				t.Errorf("two more: got %+v, want all denied", got)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, Requests(32)[31])
			if told := fieldsOf(w.Header()); w.Code != http.StatusOK || told == 0 {
				t.Errorf("a new client: status %d, fields %v, want 200 with those of a rate limit", w.Code, w.Header())
			}
		})
	}
}

// TestFairShare shows that the clients share a capacity of a burst for each, and are
// told so.
func TestFairShare(t *testing.T) {
	h, err := FairShare(16).New(limiters.Limit{Count: 3, Per: time.Hour, Burst: 3}, Service())
	if err != nil {
		t.Fatal(err)
	}
	requests := Requests(16)
	if got := Serve(h, requests, 0, 48); got.Allowed != 48 {
		t.Errorf("three of each of 16 clients: got %+v, want all allowed", got)
	}
	if got := Serve(h, requests, 0, 32); got.Denied != 32 {
		t.Errorf("two more: got %+v, want all denied", got)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, Requests(32)[31])
	if told := fieldsOf(w.Header()); w.Code != http.StatusTooManyRequests || told == 0 {
		t.Errorf("a new client: status %d, fields %v, want 429 with those of its share", w.Code, w.Header())
	}
}

// fieldsOf counts the fields that tell of a limit.
func fieldsOf(h http.Header) (n int) {
	for name := range h {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			n++
		}
	}
	return n
}
