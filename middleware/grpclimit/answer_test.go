package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// rateFields returns the guard's metadata as text.
func rateFields(md metadata.MD) string {
	var lines []string
	for name, values := range md {
		if strings.Contains(name, "ratelimit") || strings.HasPrefix(name, "headgate") {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestStyles checks that every style is in lower case, for unary calls and streams.
func TestStyles(t *testing.T) {
	const warning = "headgate-warning: soft-limit; policy=\"search\"\n"
	for style, want := range map[fields.Style]string{
		fields.Draft:      warning + "ratelimit-policy: \"search\";q=2;w=3600\nratelimit: \"search\";r=1;t=1800",
		fields.XRateLimit: warning + "x-ratelimit-limit: 2\nx-ratelimit-remaining: 1\nx-ratelimit-reset: 1800",
		fields.Draft03:    warning + "ratelimit-limit: 2\nratelimit-remaining: 1\nratelimit-reset: 1800",
		fields.None:       strings.TrimSpace(warning),
	} {
		t.Run(style.String(), func(t *testing.T) {
			r := degrading(t)
			r.Soft = 49
			guarded := func() testgrpc.TestServiceClient {
				return serve(t, newGuard(t, guard.Config{Rules: []guard.Rule{r}}), new(service), grpclimit.Options{Style: style})
			}
			header, trailer, err := call(with(t), guarded())
			if err != nil || rateFields(header) != want || len(trailer) > 0 {
				t.Errorf("unary: got %v, trailer %v, header\n%s\nwant\n%s", err, trailer, rateFields(header), want)
			}
			if got := rateFields(download(with(t), t, guarded())); got != want {
				t.Errorf("stream: header\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestNothingToTell checks that a call without a matching rule gets no metadata.
func TestNothingToTell(t *testing.T) {
	client := serve(t, newGuard(t, guard.Config{}), new(service), grpclimit.Options{})
	header, trailer, err := call(with(t), client)
	if err != nil || rateFields(header) != "" || len(trailer) > 0 {
		t.Errorf("unary: got %v, header %v, trailer %v, want no rate limit fields", err, header, trailer)
	}
	if header := download(with(t), t, client); rateFields(header) != "" {
		t.Errorf("stream: got header %v, want no rate limit fields", header)
	}
}

// TestServiceSendsHeader checks a service that sends its header itself. The header is
// complete, and the guard's metadata comes in the trailer if the header was already sent.
func TestServiceSendsHeader(t *testing.T) {
	own := metadata.Pairs("x-own", "1")
	g := newGuard(t, guard.Config{Rules: []guard.Rule{limited(t, "calls", anyMethod, headgate.Limit{Count: 9, Per: one().Per}, "ip")}})
	behind := &service{called: func(ctx context.Context) error { return grpc.SendHeader(ctx, own) }}
	client := serve(t, g, behind, grpclimit.Options{})
	header, trailer, err := call(with(t), client)
	if err != nil || len(header["x-own"]) != 1 || len(trailer["ratelimit"]) != 1 {
		t.Errorf("unary: got %v, header %v, trailer %v", err, header, trailer)
	}
	s, err := client.StreamingOutputCall(with(t), anAnswer())
	if err != nil {
		t.Fatal(err)
	}
	header, err = s.Header()
	for err == nil {
		_, err = s.Recv()
	}
	if len(header["x-own"]) != 1 || len(s.Trailer()["ratelimit"]) != 1 {
		t.Errorf("stream: got %v, header %v, trailer %v", err, header, s.Trailer())
	}
}

// TestServiceFails checks that a call that fails in the service has no header, so that a
// client may retry it.
func TestServiceFails(t *testing.T) {
	g := newGuard(t, guard.Config{Rules: []guard.Rule{limited(t, "calls", anyMethod, headgate.Limit{Count: 9, Per: one().Per}, "ip")}})
	behind := &service{called: func(context.Context) error { return status.Error(codes.Unavailable, "not yet") }}
	client := serve(t, g, behind, grpclimit.Options{})
	header, trailer, err := call(with(t), client)
	expect(t, err, codes.Unavailable)
	if len(header) > 0 || len(trailer["ratelimit"]) != 1 {
		t.Errorf("unary: got header %v, trailer %v, want no header", header, trailer)
	}
	s, err := client.StreamingOutputCall(with(t), anAnswer())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Recv()
	expect(t, err, codes.Unavailable)
	if header, _ := s.Header(); len(header) > 0 || len(s.Trailer()["ratelimit"]) != 1 {
		t.Errorf("stream: got header %v, trailer %v, want no header", header, s.Trailer())
	}
}

// retried lets clients retry refused and unavailable calls.
const retried = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// TestRetryPolicies checks that clients' retry policies work for refusals of the guard, and
// for failures of the service behind it.
func TestRetryPolicies(t *testing.T) {
	t.Run("the guard refuses for a while", func(t *testing.T) {
		watch, while := new(seen), 200*time.Millisecond
		g := newGuard(t, guard.Config{Observer: watch, Rules: []guard.Rule{
			limited(t, "calls", anyMethod, headgate.Limit{Count: 1, Per: while}, "ip"), // The guard's clock does not advance.
		}})
		server := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})))
		client := dial(t, listen(t, server, new(service)), grpc.WithDefaultServiceConfig(retried))
		_, _, err := call(with(t), client)
		expect(t, err, codes.OK)
		began := time.Now()
		_, _, err = call(with(t), client)
		expect(t, err, codes.ResourceExhausted)
		// With the policy's own backoff three tries take about 20 ms. The client must wait for the
		// pushback instead.
		if elapsed := time.Since(began); elapsed < 2*while || len(watch.requests) != 4 {
			t.Errorf("three tries took %v with %d decisions, want %v and 4", elapsed, len(watch.requests), 2*while)
		}
	})
	t.Run("the guard always refuses", func(t *testing.T) {
		watch := new(seen)
		g := newGuard(t, guard.Config{Observer: watch, Rules: []guard.Rule{limited(t, "calls", anyMethod, headgate.Limit{Per: one().Per}, "ip")}})
		server := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})))
		client := dial(t, listen(t, server, new(service)), grpc.WithDefaultServiceConfig(retried))
		_, trailer, err := call(with(t), client)
		expect(t, err, codes.ResourceExhausted)
		if n := len(watch.requests); n != 1 || !slices.Equal(trailer["grpc-retry-pushback-ms"], []string{"-1"}) {
			t.Errorf("got %d decisions, want 1, because retries cannot help; trailer %v", n, trailer)
		}
	})
	t.Run("the service fails twice", func(t *testing.T) {
		g := newGuard(t, guard.Config{Rules: []guard.Rule{limited(t, "calls", anyMethod, headgate.Limit{Count: 9, Per: one().Per}, "ip")}})
		behind := new(service)
		behind.called = func(context.Context) error {
			if behind.calls.Load()%3 != 0 {
				return status.Error(codes.Unavailable, "not yet")
			}
			return nil
		}
		server := grpc.NewServer(
			grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})), grpc.StreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
		)
		client := dial(t, listen(t, server, behind), grpc.WithDefaultServiceConfig(retried))
		if _, _, err := call(with(t), client); err != nil {
			t.Errorf("unary: got error %v", err)
		}
		if header := download(with(t), t, client); len(header["ratelimit"]) != 1 {
			t.Errorf("stream: got header %v", header)
		}
		if n := behind.calls.Load(); n != 6 {
			t.Errorf("the service saw %d calls, want 6", n)
		}
	})
}

// TestStreams checks that a stream is decided once, however many messages it has.
func TestStreams(t *testing.T) {
	limit := headgate.Limit{Count: 2, Per: one().Per}
	g := newGuard(t, guard.Config{Rules: []guard.Rule{
		limited(t, "download", downloadMethod, limit, "ip"), limited(t, "upload", uploadMethod, limit, "ip"), limited(t, "chat", chatMethod, limit, "ip"),
	}})
	behind := new(service)
	client := serve(t, g, behind, grpclimit.Options{})
	for range 2 {
		chat(t, client, 20)
		download(with(t), t, client)
		if n := upload(t, client, 20); n != 20 {
			t.Errorf("the service counted %d messages, want 20", n)
		}
	}
	for name, begin := range map[string]func(ctx context.Context) (grpc.ClientStream, error){
		"chat": func(ctx context.Context) (grpc.ClientStream, error) { return client.FullDuplexCall(ctx) },
		"download": func(ctx context.Context) (grpc.ClientStream, error) {
			return client.StreamingOutputCall(ctx, anAnswer())
		},
		"upload": func(ctx context.Context) (grpc.ClientStream, error) { return client.StreamingInputCall(ctx) },
	} {
		s, err := begin(with(t))
		if err != nil {
			t.Fatal(err)
		}
		err = s.RecvMsg(new(testgrpc.StreamingOutputCallResponse))
		expect(t, err, codes.ResourceExhausted)
		if got := detailsOf(t, err); got.violated != name {
			t.Errorf("%s: got %+v", name, got)
		}
		if header, _ := s.Header(); len(header) > 0 || len(s.Trailer()["ratelimit"]) != 1 {
			t.Errorf("%s: got header %v, trailer %v", name, header, s.Trailer())
		}
	}
	if n := behind.calls.Load(); n != 6 {
		t.Errorf("the service saw %d calls, want 6", n)
	}
}

func anAnswer() *testgrpc.StreamingOutputCallRequest {
	return &testgrpc.StreamingOutputCallRequest{ResponseParameters: []*testgrpc.ResponseParameters{{}, {}}}
}

// download reads a stream to its end and returns its header.
func download(ctx context.Context, t *testing.T, client testgrpc.TestServiceClient) metadata.MD {
	t.Helper()
	s, err := client.StreamingOutputCall(ctx, anAnswer())
	if err != nil {
		t.Fatal(err)
	}
	header, err := s.Header()
	for err == nil {
		_, err = s.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return header
}

// upload sends n messages and returns how many the service counted.
func upload(t *testing.T, client testgrpc.TestServiceClient, n int) int32 {
	t.Helper()
	s, err := client.StreamingInputCall(with(t))
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := s.Send(&testgrpc.StreamingInputCallRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := s.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	if header, err := s.Header(); err != nil || len(header["ratelimit"]) != 1 {
		t.Errorf("got header %v, error %v", header, err)
	}
	return resp.GetAggregatedPayloadSize()
}
