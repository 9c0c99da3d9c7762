package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
)

// watching is a stage that records how requests end, and can end them.
type watching struct {
	mu     sync.Mutex
	handle guard.Handle
	ended  []guard.Outcome
}

func (*watching) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "watching"}} }

func (*watching) Facts() guard.Facts { return guard.Facts{Ends: true} }

func (s *watching) Enter(p *guard.Pass) headgate.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = p.Handle()
	return headgate.Decision{Reason: headgate.WithinLimit}
}

func (s *watching) Leave(_ *guard.Pass, o *guard.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, *o)
}

func (s *watching) end() {
	s.mu.Lock()
	h := s.handle
	s.mu.Unlock()
	h.End(nil)
}

// outcome waits for the outcome of the only request.
func (s *watching) outcome(t *testing.T) guard.Outcome {
	t.Helper()
	var o guard.Outcome
	eventually(t, "the end of the request", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.ended) > 0 {
			o = s.ended[0]
		}
		return len(s.ended) > 0
	})
	return o
}

// watched adds the stage to a proxy's guard.
func watched(t *testing.T, s *watching) func(*Config) {
	t.Helper()
	g, err := guard.New(guard.Config{Stages: []guard.Stage{s}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Guard, c.BodyIdle = g, 200*time.Millisecond }
}

// TestOutcomes checks that a stage learns which side caused a missing response.
func TestOutcomes(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	refusing.Close()
	for name, c := range map[string]struct {
		upstream func(http.ResponseWriter, *http.Request)
		sent     string // bytes after the request line
		end      guard.End
		status   int
	}{
		"a 502 from the service":            {upstream: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, end: guard.Answered, status: 502},
		"a 504 from the service":            {upstream: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) }, end: guard.Answered, status: 504},
		"none listens":                      {end: guard.Failed, status: 502},
		"the service closes the connection": {upstream: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, end: guard.Failed, status: 502},
		"the service aborts its response": {upstream: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "the beginning")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, end: guard.Failed, status: 200},
		"a body that is malformed": {upstream: reads, sent: "Transfer-Encoding: chunked\r\n\r\nX\r\n\r\n", end: guard.BrokenRequest, status: 400},
		"a body that stops":        {upstream: reads, sent: "Content-Length: 9\r\n\r\nabc", end: guard.BrokenRequest, status: 408},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(watching)
			f := serveBefore(t, allowed(), refusing.URL, watched(t, s))
			if c.upstream != nil {
				f = serve(t, allowed(), http.HandlerFunc(c.upstream), watched(t, s))
			}
			if c.sent == "" {
				c.sent = "\r\n"
			}
			method := "GET"
			if c.sent != "\r\n" {
				method = "POST"
			}
			talk(t, strings.TrimPrefix(f.url, "http://"), method+" / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+c.sent)
			if o := s.outcome(t); o.End != c.end || o.Status != c.status {
				t.Errorf("the request ended as %v with status %d, want %v with %d", o.End, o.Status, c.end, c.status)
			}
		})
	}
}

// reads is a service that responds after it has read the body.
func reads(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// TestStoppedByAStage checks a request that a stage ends before its response. The outcome,
// response, access log and counters differ from those of a disconnected client.
func TestStoppedByAStage(t *testing.T) {
	for name, stops := range map[string]bool{"the stage": true, "the client": false} {
		t.Run(name, func(t *testing.T) {
			s, reached := new(watching), make(chan struct{})
			p := beforeHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(reached)
				<-r.Context().Done()
			}), watched(t, s))
			at, lines := logging(t, p, ServerConfig{})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			go func() {
				if <-reached; stops {
					s.end()
				} else {
					leave()
				}
			}()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			status := 0
			if resp, err := httpClient(t, nil, http1Only).Do(req); err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			want, answered, class, logs := guard.Outcome{End: guard.ClientLeft}, 0, report.ClassCanceled, statusClientGone
			if stops {
				want, answered, class, logs = guard.Outcome{End: guard.Stopped, Status: 503}, 503, report.Class5xx, 503
			}
			if o := s.outcome(t); o.End != want.End || o.Status != want.Status || status != answered {
				t.Errorf("got end %v with status %d, response %d; want %v, %d and %d", o.End, o.Status, status, want.End, want.Status, answered)
			}
			if line := last(t, 1, lines); line.Status != logs || line.UpstreamStatus != 0 {
				t.Errorf("the log line is %+v", line)
			}
			eventually(t, "the request to be counted", func() bool { return p.traffic.Answers(class) == 1 })
		})
	}
}

// TestClientStopsReading checks that a client that stops reading counts as disconnected,
// and not as a failure of the service.
func TestClientStopsReading(t *testing.T) {
	s := new(watching)
	f := serve(t, allowed(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}), watched(t, s))
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if o := s.outcome(t); o.End != guard.ClientLeft || o.Status != 200 {
		t.Errorf("the request ended as %v with status %d", o.End, o.Status)
	}
}

// slowClient is a body that reports whether the stage knows of each wait for the client.
type slowClient struct {
	*watching

	known int
}

func (c *slowClient) Read(p []byte) (int, error) {
	if c.handle.Receiving() {
		c.known++
	}
	return len(p), nil
}

func (*slowClient) Close() error { return nil }

// TestReceiving: a request waits for its client only while its body is read. Where the service does not take the bytes, it
// does not.
func TestReceiving(t *testing.T) {
	stage := new(watching)
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	ticket := &guard.Ticket{Answer: new(guard.Answer)}
	if err := g.Admit(t.Context(), &headgate.Request{Method: "POST", Path: "/"}, ticket); err != nil {
		t.Fatal(err)
	}
	client := &slowClient{watching: stage}
	b := &body{ReadCloser: client, ticket: ticket}
	for n := range 3 {
		if stage.handle.Receiving() {
			t.Error("the request waits for its client between reads")
		}
		if _, err := b.Read(make([]byte, 10)); err != nil || client.known != n+1 {
			t.Errorf("the stage knows of %d reads of %d: %v", client.known, n+1, err)
		}
	}
	ticket.Done(guard.Outcome{})
}
