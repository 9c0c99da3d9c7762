package httplimit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/middleware/httplimit"
)

// throttled wraps a handler in the middleware with a throttle of one place.
func throttled(t *testing.T, count bool, next http.HandlerFunc) (http.Handler, *throttler.Stage) {
	t.Helper()
	stage, err := throttler.New(throttler.Config{
		Limits: throttler.Limits{Concurrency: 1, Deadline: 500 * time.Millisecond}, CountStreams: count,
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(g, httplimit.Options{})(next), stage
}

// message is a gRPC message.
const message = "\x00\x00\x00\x00\x03abc"

// TestStreamsGiveUpTheirPlace checks after which step of a handler a stream has no place.
func TestStreamsGiveUpTheirPlace(t *testing.T) {
	write := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) }
	}
	copies := func(w http.ResponseWriter) { _, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(message)}) }
	for name, c := range map[string]struct {
		kind  string
		steps []func(http.ResponseWriter)
		count bool
		want  []int
	}{
		"events":           {kind: "text/event-stream", steps: []func(http.ResponseWriter){write("data: 1\n\n")}, want: []int{0}},
		"counted events":   {kind: "text/event-stream", steps: []func(http.ResponseWriter){write("data: 1\n\n")}, count: true, want: []int{1}},
		"a flushed header": {kind: "text/event-stream", steps: []func(http.ResponseWriter){func(w http.ResponseWriter) { w.(http.Flusher).Flush() }}, want: []int{0}},
		"a header": {
			kind: "text/event-stream", want: []int{1, 0},
			steps: []func(http.ResponseWriter){
				func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) },
				func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
			},
		},
		"another answer":   {kind: "text/plain", steps: []func(http.ResponseWriter){write(message), write(message)}, want: []int{1, 1}},
		"a gRPC stream":    {kind: "application/grpc", steps: []func(http.ResponseWriter){write(message), write(message[:1])}, want: []int{1, 0}},
		"copied messages":  {kind: "application/grpc", steps: []func(http.ResponseWriter){copies, copies}, want: []int{1, 0}},
		"copies of others": {kind: "text/plain", steps: []func(http.ResponseWriter){copies, copies}, want: []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var stage *throttler.Stage
			var h http.Handler
			h, stage = throttled(t, c.count, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				for n, step := range c.steps {
					step(w)
					if l, _ := stage.Load(); l.InFlight != c.want[n] {
						t.Errorf("after step %d: %d in flight, want %d", n, l.InFlight, c.want[n])
					}
				}
			})
			s := httptest.NewServer(h)
			resp, err := s.Client().Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			s.Close()
			if l, _ := stage.Load(); l.InFlight != 0 {
				t.Errorf("%d in flight at the end", l.InFlight)
			}
		})
	}
}

// TestEventsTeachNothing checks that long streams of events leave the predictions as they were.
func TestEventsTeachNothing(t *testing.T) {
	for kind, spoils := range map[string]bool{"text/event-stream": false, "text/plain": true} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := throttled(t, false, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, "data: 1\n\n")
				time.Sleep(2 * time.Second) //nolint:forbidigo // In a bubble.
			})
			refused := 0
			for range 20 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/chat", http.NoBody))
				if w.Code != http.StatusOK {
					refused++
				}
			}
			if refused > 0 != spoils {
				t.Errorf("%s: %d of 20 requests were refused", kind, refused)
			}
		})
	}
}
