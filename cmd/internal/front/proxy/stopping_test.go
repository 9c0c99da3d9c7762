package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestStoppedStream: a stream whose key has no units left ends after a whole event, with the error event of its API, and the service's
// call ends at once. What passed is charged.
func TestStoppedStream(t *testing.T) {
	const limit = 2000
	for _, fast := range []bool{false, true} {
		for name, protocol := range map[string]func(*http.Protocols){"HTTP/1.1": http1Only, "HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }} {
			t.Run(fmt.Sprintf("%s, fast %v", name, fast), func(t *testing.T) {
				r := tokenRule(t)
				r.Policies[0].Limit = headgate.Limit{Count: limit, Per: time.Hour}
				r.OnSpent = guard.StopAnswer
				g, change := tokenGuard(t, r)
				closed := make(chan time.Time, 1)
				behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "text/event-stream")
					for r.Context().Err() == nil {
						for _, piece := range []string{chunk[:20], chunk[20:]} {
							_, _ = io.WriteString(w, piece)
							_ = http.NewResponseController(w).Flush()
						}
					}
					closed <- time.Now()
				}))
				defer behind.Close()
				_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
				res, err := httpClient(t, nil, protocol).Post("http://"+at+"/v1/x/completions", "application/json", strings.NewReader(`{"max_tokens":10}`))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil {
					t.Errorf("the answer does not end well: %v", err)
				}
				ended := time.Now()
				events := strings.SplitAfter(string(got), "\n\n")
				last := events[len(events)-2] // The text ends after an event.
				if !strings.Contains(last, "error") || !strings.Contains(last, "The limit of rule tokens was reached") {
					t.Errorf("the last event is %q", last)
				}
				for _, e := range events[:len(events)-2] {
					if e != chunk {
						t.Fatalf("an event is %q", e)
					}
				}
				select {
				case at := <-closed:
					if late := at.Sub(ended); late > 10*time.Second {
						t.Errorf("the service's call ended %v after the answer", late)
					}
				case <-time.After(10 * time.Second):
					t.Error("the service's call goes on")
				}
				eventually(t, "the end", func() bool { return g.Tokens("tokens").Stopped == 1 && g.AnswersBy("tokens", "aborted") == 1 })
				if s := g.Settled("tokens"); s.Charged > 0 {
					t.Errorf("%d units were charged beyond the limit", s.Charged)
				}
			})
		}
	}
}

// TestFinishedStream: with units enough, a stream under on_spent: stop passes whole, and what was reserved beyond its cost is returned.
func TestFinishedStream(t *testing.T) {
	for _, fast := range []bool{false, true} {
		r := tokenRule(t)
		r.Policies[0].Limit = headgate.Limit{Count: 10_000, Per: time.Hour}
		r.OnSpent = guard.StopAnswer
		g, change := tokenGuard(t, r)
		behind := httptest.NewServer(new(chatService))
		t.Cleanup(behind.Close)
		_, at := start(t, before(t, UpstreamConfig{URL: parsed(t, behind.URL)}, change, onThePlane(fast)), nil, ServerConfig{})
		for n := uint64(1); n < 20; n++ {
			res, err := httpClient(t, nil, http1Only).Post("http://"+at+"/v1/x/completions?piece=1000", "application/json", strings.NewReader(`{"max_tokens":10}`))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if string(got) != chatStream(100) || err != nil {
				t.Fatalf("the answer has %d bytes, %v", len(got), err)
			}
			settledTokens(t, g, "stated", n)
		}
		left := int64(0)
		eventually(t, "the return of what was reserved", func() bool {
			var a guard.Answer
			ticket := guard.Ticket{Answer: &a}
			if err := g.Admit(t.Context(), &headgate.Request{Method: http.MethodGet, Path: "/v1/x/completions", Peek: true}, &ticket); err != nil {
				t.Fatal(err)
			}
			left = a.Results[0].Decision.Remaining + 1 // The peek shows the limit after one unit.
			return left == 10_000-19*107
		})
		if left > 10_000-19*107 {
			t.Errorf("fast %v: %d units are left, want %d", fast, left, 10_000-19*107)
		}
	}
}
