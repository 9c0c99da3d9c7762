package throttler_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/middleware/httplimit"
)

// deaf is a service with one place that reads its requests and answers none of them but /answered.
func deaf(t *testing.T, mode guard.Mode) *service {
	t.Helper()
	c := oneAtATime()
	c.Deadline, c.Mode = time.Second, mode
	s := newService(t, c)
	s.handler = httplimit.New(s.guard, httplimit.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("name")
		s.notef("%s starts", name)
		read := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, r.Body); close(read) }()
		select {
		case <-read:
		case <-r.Context().Done():
		}
		if r.URL.Path != "/answered" {
			<-r.Context().Done()
		}
		if r.Context().Err() != nil {
			w.Header().Set("Retry-After", "9")
			http.Error(w, "temporary-reduced-capacity", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "done")
	}))
	return s
}

// sendBody sends a request whose body ends after a time. Its client leaves at the end of ctx.
func (s *service) sendBody(ctx context.Context, path, name string, ends time.Duration) {
	body, client := io.Pipe()
	context.AfterFunc(ctx, func() { _ = body.CloseWithError(io.ErrUnexpectedEOF) })
	time.AfterFunc(ends, func() { _ = client.Close() })
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path+"?name="+name, body)
	r.RemoteAddr = trustedPeer
	go s.receive(name, r)
	synctest.Wait()
}

// TestProbes: in a hang, the service has one probe at a time. A client that sends its body slowly has the place for a
// sixteenth of the deadline, and a request without an answer for three deadlines.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := deaf(t, guard.Enforce)
		ctx, leave := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer leave()
		s.sendBody(ctx, "/", "first", 0)
		time.Sleep(1600 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.sendBody(t.Context(), "/answered", "slow", time.Minute)
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.sendBody(t.Context(), "/", "hung", 5*time.Millisecond)
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.send("refused", "0s", trustedPeer)
		time.Sleep(2100 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.sendTo("/answered", "next", "0s", trustedPeer)
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: first starts
1500: first gets 503, retry after 9 s
1600: slow starts
1663: slow gets 503, retry after 9 s
1663: hung starts
2673: refused gets 503, retry after 1 s
4663: hung gets 503, retry after 9 s
4710: next starts
4710: next gets 200`)
		if _, stats := s.stage.Load(); stats.Hung {
			t.Error("the service hangs after its answer")
		}
	})
}

// TestProbesInShadow: in mode Shadow, no request is ended.
func TestProbesInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := deaf(t, guard.Shadow)
		ctx, leave := context.WithTimeout(t.Context(), 20*time.Second)
		defer leave()
		for _, name := range []string{"first", "second", "third"} {
			s.sendBody(ctx, "/", name, time.Minute)
			time.Sleep(2 * time.Second) //nolint:forbidigo // In a bubble.
		}
		time.Sleep(time.Minute) //nolint:forbidigo // In a bubble.
		s.tells(`
0: first starts
2000: second starts
4000: third starts
20000: first gets 503, retry after 9 s
20000: second gets 503, retry after 9 s
20000: third gets 503, retry after 9 s`)
	})
}

// TestHeaderOfAnAnswer: the header of an answer ends a hang, and requests go on. A status of a gateway does not.
func TestHeaderOfAnAnswer(t *testing.T) {
	for status, want := range map[int]bool{http.StatusOK: false, http.StatusNotFound: false, http.StatusGatewayTimeout: true, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			c := oneAtATime()
			c.Deadline = time.Second
			stage, err := throttler.New(c)
			if err != nil {
				t.Fatal(err)
			}
			g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
			if err != nil {
				t.Fatal(err)
			}
			tickets := [2]guard.Ticket{}
			for i := range tickets {
				admit(t, g, &tickets[i])
			}
			tickets[0].Forward()
			time.Sleep(1001 * time.Millisecond) //nolint:forbidigo // In a bubble.
			if _, stats := stage.Load(); !stats.Hung {
				t.Fatal("no hang")
			}
			tickets[0].Answers(status)
			if _, stats := stage.Load(); stats.Hung != want {
				t.Errorf("after %d, the service hangs: %v", status, stats.Hung)
			}
			for i := range tickets {
				tickets[i].Done(guard.Outcome{Status: status})
			}
		})
	}
}

// admit sends a request of any kind to a guard.
func admit(t *testing.T, g *guard.Guard, ticket *guard.Ticket) {
	t.Helper()
	ticket.Answer = &guard.Answer{}
	if err := g.Admit(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, ticket); err != nil {
		t.Fatal(err)
	}
}

// TestAnswersAfterTheEnd: what a handler writes after its client has left, or after the stage has ended the request, is no
// answer of the service. The hang is found, and lasts.
func TestAnswersAfterTheEnd(t *testing.T) {
	for name, stays := range map[string]time.Duration{"clients leave": 1200 * time.Millisecond, "the stage ends probes": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c := oneAtATime()
			c.Concurrency, c.Deadline = 4, time.Second
			s := newService(t, c)
			forwarded := 0
			h := httplimit.New(s.guard, httplimit.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				forwarded++
				s.mu.Unlock()
				<-r.Context().Done()
				w.WriteHeader(499)
			}))
			hung := 0
			for n := range 60 {
				left := stays
				if n < 10 {
					left = 1200 * time.Millisecond
				}
				ctx, leave := context.WithCancel(t.Context()) // Without a deadline.
				time.AfterFunc(left, leave)
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
				go h.ServeHTTP(httptest.NewRecorder(), r)
				time.Sleep(200 * time.Millisecond) //nolint:forbidigo // In a bubble.
				if _, stats := s.stage.Load(); stats.Hung {
					hung++
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if forwarded > 16 || hung < 50 {
				t.Errorf("%s: the service gets %d requests of 60, and hangs at %d of 60 times", name, forwarded, hung)
			}
		})
	}
}

// TestProbesWithBodies: a service that has recovered answers the first request, although it takes longer than a
// sixteenth of the deadline and the handler does not read the body to its end. A handler that waits for the body later than
// that does not keep the place.
func TestProbesWithBodies(t *testing.T) {
	for name, c := range map[string]struct {
		read func(io.Reader)
		want string
	}{
		"unread":  {func(io.Reader) { time.Sleep(100 * time.Millisecond) }, "1700: post gets 200"},                                            //nolint:forbidigo // In a bubble.
		"decoded": {func(r io.Reader) { _ = json.NewDecoder(r).Decode(new(any)); time.Sleep(100 * time.Millisecond) }, "1700: post gets 200"}, //nolint:forbidigo // In a bubble.
		"late": {func(r io.Reader) { time.Sleep(100 * time.Millisecond); _, _ = io.Copy(io.Discard, r) }, //nolint:forbidigo // In a bubble.
			"1726: post ends"},
	} {
		synctest.Test(t, func(t *testing.T) {
			config := oneAtATime()
			config.Deadline = time.Second
			s := newService(t, config)
			s.handler = httplimit.New(s.guard, httplimit.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					<-r.Context().Done()
					return
				}
				stop := context.AfterFunc(r.Context(), func() { s.notef("post ends") })
				c.read(r.Body)
				stop()
				_, _ = io.WriteString(w, "done")
			}))
			ctx, leave := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer leave()
			go s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
			time.Sleep(1600 * time.Millisecond) //nolint:forbidigo // In a bubble.
			body, client := io.Pipe()
			go s.receive("post", httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
			go func() { _, _ = io.WriteString(client, "{}") }()
			time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
			s.mu.Lock()
			if len(s.log) == 0 || s.log[0] != c.want {
				t.Errorf("%s: %q, want %q first", name, s.log, c.want)
			}
			s.mu.Unlock()
			_ = body.Close()
			_ = client.Close()
			time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		})
	}
}
