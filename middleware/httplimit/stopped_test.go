package httplimit_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// ender is a stage that can end requests, and whose test gets the handle of each.
type ender struct {
	entered chan guard.Handle
	left    chan guard.Outcome
}

func (ender) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "ender"}} }

func (ender) Facts() guard.Facts { return guard.Facts{Ends: true} }

func (e ender) Enter(p *guard.Pass) headgate.Decision {
	e.entered <- p.Handle()
	return headgate.Decision{}
}

func (e ender) Leave(_ *guard.Pass, o *guard.Outcome) { e.left <- *o }

// serveEnded serves a handler behind an ender.
func serveEnded(t *testing.T, h2 bool, next http.HandlerFunc) (ender, *httptest.Server) {
	t.Helper()
	e := ender{make(chan guard.Handle, 10), make(chan guard.Outcome, 10)}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{e}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(httplimit.New(g, httplimit.Options{})(next))
	if server.EnableHTTP2 = h2; h2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return e, server
}

// ask sends a request in a goroutine, and gives its answer as a line.
func ask(t *testing.T, server *httptest.Server, method string, body io.Reader) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		resp, err := server.Client().Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		got <- strings.Join([]string{resp.Status, resp.Header.Get("Retry-After"), resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"), string(text)}, "|")
	}()
	return got
}

// within receives a value, or fails after 20 s.
func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited 20 s for %s", what)
	}
	panic("unreachable")
}

const stoppedAnswer = `503 Service Unavailable|1|application/problem+json||{"type":"about:blank","title":"Service Unavailable","status":503,` +
	`"detail":"The request was stopped before the service responded.",` +
	`"message":"The request was stopped before the service responded.",` +
	`"error":{"type":"api_error","message":"The request was stopped before the service responded."}}` + "\n"

// TestStoppedWithoutAnAnswer: a client whose request a stage ends gets a 503, although the handler writes nothing. An answer of
// the handler's own stays.
func TestStoppedWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		h2   bool
		end  func(http.ResponseWriter)
		want string
	}{
		"nothing":        {end: func(http.ResponseWriter) {}, want: stoppedAnswer},
		"nothing, h2":    {h2: true, end: func(http.ResponseWriter) {}, want: stoppedAnswer},
		"fields alone":   {end: func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip") }, want: stoppedAnswer},
		"an early hint":  {end: func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }, want: stoppedAnswer},
		"its own answer": {end: func(w http.ResponseWriter) { http.Error(w, "late", http.StatusBadGateway) }, want: "502 Bad Gateway||text/plain; charset=utf-8||late\n"},
	} {
		t.Run(name, func(t *testing.T) {
			began := make(chan bool, 1)
			e, server := serveEnded(t, c.h2, func(w http.ResponseWriter, r *http.Request) {
				began <- true
				<-r.Context().Done()
				c.end(w)
			})
			got := ask(t, server, http.MethodGet, http.NoBody)
			handle := within(t, "the request", e.entered)
			within(t, "the handler", began)
			handle.End(errors.New("stop"))
			if got := within(t, "the answer", got); got != c.want {
				t.Errorf("the client gets %q, want %q", got, c.want)
			}
			if o := within(t, "the end", e.left); o.End != guard.Stopped {
				t.Errorf("the end is %v, want %v", o.End, guard.Stopped)
			}
		})
	}
}

// TestStoppedUpload: the end of a request ends a read of its body. The client is still sending, and gets its 503.
func TestStoppedUpload(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			failed := make(chan error, 1)
			e, server := serveEnded(t, h2, func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				failed <- err
			})
			for range 3 {
				body, client := io.Pipe()
				got := ask(t, server, http.MethodPost, body)
				handle := within(t, "the request", e.entered)
				_, _ = client.Write([]byte("a"))
				for end := time.Now().Add(20 * time.Second); !handle.Receiving(); <-time.After(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("the stage does not know that the request waits for its client")
					}
				}
				handle.End(errors.New("stop"))
				if err := within(t, "the handler", failed); err == nil || err.Error() != "context canceled" {
					t.Errorf("the read fails with %v", err)
				}
				if got := within(t, "the answer", got); got != stoppedAnswer {
					t.Errorf("the client gets %q", got)
				}
				_ = client.Close()
				within(t, "the end", e.left)
			}
			got := ask(t, server, http.MethodPost, strings.NewReader("whole")) // The deadline was that of one request.
			within(t, "the handler", failed)
			if got := within(t, "the answer", got); !strings.HasPrefix(got, "200 OK|") {
				t.Errorf("the next client gets %q", got)
			}
		})
	}
}

// TestUnreadBodyIsNotAwaited: a request waits for its client only while its body is read.
func TestUnreadBodyIsNotAwaited(t *testing.T) {
	step := make(chan bool)
	e, server := serveEnded(t, false, func(_ http.ResponseWriter, r *http.Request) {
		step <- true
		_, _ = r.Body.Read(make([]byte, 10))
		step <- true
	})
	body, client := io.Pipe()
	got := ask(t, server, http.MethodPost, body)
	handle := within(t, "the request", e.entered)
	if handle.Receiving() {
		t.Error("the request waits for its client before its body is read")
	}
	within(t, "the handler", step)
	_, _ = client.Write([]byte("{}"))
	within(t, "the read", step)
	if handle.Receiving() {
		t.Error("the request waits for its client after the read")
	}
	_ = client.Close()
	within(t, "the answer", got)
}
