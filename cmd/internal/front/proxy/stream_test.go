package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
)

const (
	grpcType  = "application/grpc"
	eventType = "text/event-stream"
	message   = "\x00\x00\x00\x00\x03abc" // a gRPC message
)

// throttled adds a throttle of one place to a proxy's guard.
func throttled(t *testing.T, count bool) (*throttler.Stage, func(*Config)) {
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
	return stage, func(c *Config) { c.Guard = g }
}

func inFlight(s *throttler.Stage) int {
	l, _ := s.Load()
	return l.InFlight
}

// TestPlaceOfACall checks that a gRPC stream gives up its place at its second message: while the
// stream goes on, another call passes a throttle of one place. A unary call keeps the place.
func TestPlaceOfACall(t *testing.T) {
	for name, count := range map[string]bool{"handshake": false, "count": true} {
		t.Run(name, func(t *testing.T) {
			stage, change := throttled(t, count)
			checks := health.NewServer()
			during := make(chan int, 1)
			behind := grpc.NewServer(grpc.UnaryInterceptor(
				func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
					during <- inFlight(stage)
					return next(ctx, req)
				}))
			grpc_health_v1.RegisterHealthServer(behind, checks)
			caller := callers(t, behind, change)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := caller.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			want := []int{1, 0, 0}
			if count {
				want = []int{1, 1, 1}
			}
			for n, want := range want {
				checks.SetServingStatus("", grpc_health_v1.HealthCheckResponse_ServingStatus(1+n%2))
				if _, err := stream.Recv(); err != nil {
					t.Fatal(err)
				}
				if got := inFlight(stage); got != want {
					t.Errorf("after message %d: %d in flight, want %d", n+1, got, want)
				}
			}
			if count {
				cancel() // Otherwise the next call waits for its deadline.
				eventually(t, "the end of the stream", func() bool { return inFlight(stage) == 0 })
			}
			if _, err := caller.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
				t.Error(err)
			}
			if n := <-during; n != 1 {
				t.Errorf("%d in flight during a unary call, want 1", n)
			}
			cancel()
			eventually(t, "the end of all calls", func() bool { return inFlight(stage) == 0 })
		})
	}
}

// callers serves a gRPC service behind a proxy, and returns a client.
func callers(t *testing.T, behind *grpc.Server, change func(*Config)) grpc_health_v1.HealthClient {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = behind.Serve(ln) }()
	t.Cleanup(behind.Stop)
	p := before(t, UpstreamConfig{URL: parsed(t, "h2c://"+ln.Addr().String()), Timeout: 5 * time.Second}, change)
	_, at := start(t, p, nil, ServerConfig{})
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

// sending is a service that sends each part when it gets a step, after it has read the request.
type sending struct {
	kind  string
	parts []string
	step  chan struct{}
}

func (s *sending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", s.kind)
	for _, part := range s.parts {
		<-s.step
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
	}
	<-s.step
}

// TestPlaceOfAnAnswer checks after each part of an answer whether the request has its place.
func TestPlaceOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		asked string // the request's content type
		sent  string
		parts []string
		count bool
		want  []int
	}{
		"events":          {kind: eventType + "; charset=utf-8", parts: []string{"data: 1\n\n", "data: 2\n\n"}, want: []int{0, 0}},
		"counted events":  {kind: eventType, parts: []string{"data: 1\n\n", "data: 2\n\n"}, count: true, want: []int{1, 1}},
		"a long answer":   {kind: "text/plain", parts: []string{message, message}, want: []int{1, 1}},
		"a server stream": {kind: grpcType, asked: grpcType, sent: message, parts: []string{message, message[:1], message[1:]}, want: []int{1, 0, 0}},
		"a prefix in parts": {
			kind: grpcType + "+json", asked: grpcType + "+json", sent: message,
			parts: []string{message[:2], message[2:], message}, want: []int{1, 1, 0},
		},
		"a client that sends two messages": {kind: grpcType, asked: grpcType, sent: message + message, parts: []string{message}, want: []int{1}},
		"a client that asks for a stream":  {kind: "text/plain", asked: grpcType, sent: message + message, parts: []string{message, message}, want: []int{1, 1}},
		"grpc-web":                         {kind: grpcType + "-web", asked: grpcType + "-web", sent: message, parts: []string{message, message}, want: []int{1, 1}},
	} {
		for version, protocols := range map[string]func(*http.Protocols){"HTTP/1": http1Only, "HTTP/2": http2} {
			t.Run(name+", "+version, func(t *testing.T) {
				stage, change := throttled(t, c.count)
				s := &sending{kind: c.kind, parts: c.parts, step: make(chan struct{})}
				behind := httptest.NewUnstartedServer(s)
				behind.Config.Protocols = new(http.Protocols)
				protocols(behind.Config.Protocols)
				behind.Start()
				t.Cleanup(behind.Close)
				u := parsed(t, behind.URL)
				if version == "HTTP/2" {
					u.Scheme = "h2c"
				}
				_, at := start(t, before(t, UpstreamConfig{URL: u}, change), nil, ServerConfig{})
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/", strings.NewReader(c.sent))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", c.asked)
				read := reader(t, httpClient(t, nil, protocols), req)
				for n, part := range c.parts {
					s.step <- struct{}{}
					if got := read(len(part)); got != part {
						t.Fatalf("part %d is %q, want %q", n, got, part)
					}
					if got := inFlight(stage); got != c.want[n] {
						t.Errorf("after part %d: %d in flight, want %d", n, got, c.want[n])
					}
				}
				s.step <- struct{}{}
				eventually(t, "the end of the request", func() bool { return inFlight(stage) == 0 })
			})
		}
	}
}

// reader sends a request, and returns a function that reads the next bytes of its answer.
func reader(t *testing.T, c *http.Client, req *http.Request) (read func(n int) string) {
	t.Helper()
	answered := make(chan *http.Response, 1)
	go func() {
		defer close(answered)
		resp, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		answered <- resp
	}()
	var resp *http.Response
	return func(n int) string {
		if resp == nil {
			if resp = <-answered; resp == nil {
				t.FailNow()
			}
		}
		text := make([]byte, n)
		if _, err := io.ReadFull(resp.Body, text); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// slow is an upstream whose answers have messages, two seconds apart.
type slow struct {
	kind     string
	messages int
}

// RoundTrip implements http.RoundTripper.
func (s slow) RoundTrip(*http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	go func() {
		for range s.messages {
			_, _ = io.WriteString(out, message)
			time.Sleep(2 * time.Second) //nolint:forbidigo // In a bubble.
		}
		_ = out.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Body: in, ContentLength: -1}, nil
}

// TestStreamsTeachNothing checks that streams of several deadlines leave the predictions as they
// were: later requests are admitted. Unary calls of this time are refused after a few.
func TestStreamsTeachNothing(t *testing.T) {
	for name, c := range map[string]struct {
		upstream slow
		count    bool
		spoils   bool
	}{
		"a gRPC stream":         {upstream: slow{grpcType, 3}},
		"a counted gRPC stream": {upstream: slow{grpcType, 3}, count: true},
		"server-sent events":    {upstream: slow{eventType, 3}},
		"counted events":        {upstream: slow{eventType, 3}, count: true},
		"a unary call":          {upstream: slow{grpcType, 1}, spoils: true},
		"a long answer":         {upstream: slow{"text/plain", 3}, spoils: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, change := throttled(t, c.count)
				p := newProxy(t, allowed(), "http://service.example", c.upstream, change)
				refused := 0
				for range 20 {
					w := httptest.NewRecorder()
					p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/chat", http.NoBody))
					if w.Code != http.StatusOK {
						refused++
					}
				}
				if refused > 0 != c.spoils {
					t.Errorf("%d of 20 requests were refused", refused)
				}
			})
		})
	}
}
