package grpclimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/store/memory"
)

// delayed returns a rule whose calls wait for their departures.
func delayed(t *testing.T, l headgate.Limit, maxWait time.Duration) guard.Rule {
	t.Helper()
	r := limited(t, "slow", anyMethod, l, "ip")
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: maxWait}
	return r
}

// TestWait checks that unary calls and streams wait for their departure and then pass.
func TestWait(t *testing.T) {
	const interval = 50 * time.Millisecond
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, guard.Config{Store: store, Rules: []guard.Rule{delayed(t, headgate.Limit{Count: 1, Per: interval}, time.Minute)}})
	client := serve(t, g, new(service), grpclimit.Options{})
	began := time.Now()
	for range 2 {
		if _, _, err := call(with(t), client); err != nil {
			t.Fatal(err)
		}
		chat(t, client, 1)
	}
	if elapsed := time.Since(began); elapsed < 3*interval {
		t.Errorf("four calls took %v, want at least %v", elapsed, 3*interval)
	}
}

// TestCancelledWait checks that a call canceled while it waits returns its units.
func TestCancelledWait(t *testing.T) {
	g := newGuard(t, guard.Config{Rules: []guard.Rule{delayed(t, one(), 24*time.Hour)}})
	behind := new(service)
	ended := make(chan error, 8)
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(watchUnary(ended), grpclimit.Unary(g, grpclimit.Options{})),
		grpc.ChainStreamInterceptor(watchStream(ended), grpclimit.Stream(g, grpclimit.Options{})),
	)
	client := dial(t, listen(t, server, behind))
	if _, _, err := call(with(t), client); err != nil {
		t.Fatal(err)
	}
	<-ended
	for name, begin := range map[string]func(context.Context) error{
		"unary": func(ctx context.Context) error {
			_, _, err := call(ctx, client)
			return err
		},
		"stream": func(ctx context.Context) error {
			s, err := client.FullDuplexCall(ctx)
			if err != nil {
				return err
			}
			_, err = s.Recv()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			go func() { answered <- begin(ctx) }()
			eventually(t, "the call to wait", func() bool { return g.Waiting("slow") == 1 })
			cancel()
			expect(t, <-answered, codes.Canceled)
			expect(t, <-ended, codes.Canceled) // The server sees the same status.
			if n := g.Waiting("slow"); n != 0 {
				t.Errorf("%d calls still wait, want 0", n)
			}
		})
	}
	if n := behind.calls.Load(); n != 1 {
		t.Errorf("the service saw %d calls, want 1", n)
	}
	// The units were returned: the next call's turn is in one hour, not in three.
	_, _, err := call(with(t), client)
	if got := detailsOf(t, err); got.retry != time.Hour {
		t.Errorf("got %+v, want a turn in 1h", got)
	}
}

// TestDeadlineBeforeDeparture checks that a call whose deadline is before its departure is
// refused at once and uses no units.
func TestDeadlineBeforeDeparture(t *testing.T) {
	g := newGuard(t, guard.Config{Rules: []guard.Rule{delayed(t, one(), 24*time.Hour)}})
	client := serve(t, g, new(service), grpclimit.Options{})
	if _, _, err := call(with(t), client); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, trailer, err := call(with(t), client) // The deadline is in 20 s.
		expect(t, err, codes.ResourceExhausted)
		want := details{reason: "WAIT_TOO_LONG", retry: time.Hour, violated: "slow"}
		if got := detailsOf(t, err); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if len(trailer["ratelimit"]) != 1 {
			t.Errorf("got trailer %v, want ratelimit in it", trailer)
		}
		s, err := client.FullDuplexCall(with(t))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		if got := detailsOf(t, err); got != want {
			t.Errorf("stream: got %+v, want %+v", got, want)
		}
	}
	if n := g.Waiting("slow"); n != 0 {
		t.Errorf("%d calls wait, want none", n)
	}
}

// TestStopWhileWaiting checks that calls stop waiting when their server stops.
func TestStopWhileWaiting(t *testing.T) {
	g := newGuard(t, guard.Config{Rules: []guard.Rule{delayed(t, one(), 24*time.Hour)}})
	server := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})))
	client := dial(t, listen(t, server, new(service)))
	if _, _, err := call(with(t), client); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, _, err := call(t.Context(), client)
		answered <- err
	}()
	eventually(t, "the call to wait", func() bool { return g.Waiting("slow") == 1 })
	server.Stop()
	expect(t, <-answered, codes.Unavailable)
	eventually(t, "no call to wait", func() bool { return g.Waiting("slow") == 0 })
}

// noReturn is a store whose Return fails.
type noReturn struct{ headgate.Store }

func (noReturn) Return(context.Context, []headgate.Receipt) error { return errBroken }

func (noReturn) ReturnLast(context.Context, *headgate.Receipt) (bool, error) { return false, errBroken }

// TestReturnFails checks that a failed return of units is logged, and not sent to the client.
func TestReturnFails(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, guard.Config{Store: noReturn{store}, Rules: []guard.Rule{delayed(t, one(), 24*time.Hour)}})
	logged := new(logs.Text)
	ended := make(chan error, 8)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(
		watchUnary(ended), grpclimit.Unary(g, grpclimit.Options{Log: logged.Logger()})))
	client := dial(t, listen(t, server, new(service)))
	if _, _, err := call(with(t), client); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	_, _, err = call(with(t), client)
	expect(t, err, codes.ResourceExhausted)
	<-ended
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _, _ = call(ctx, client) }()
	eventually(t, "the call to wait", func() bool { return g.Waiting("slow") == 1 })
	cancel()
	err = <-ended
	expect(t, err, codes.Canceled)
	if errors.Is(err, errBroken) || strings.Contains(err.Error(), "10.0.0.7") {
		t.Errorf("the client got %v", err)
	}
	if got := strings.Count(logged.String(), "10.0.0.7"); got != 1 {
		t.Errorf("%d log lines have the store's error, want 1: %s", got, logged)
	}
}

// watchUnary sends the result of each call on the server to ended.
func watchUnary(ended chan<- error) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		ended <- err
		return resp, err
	}
}

func watchStream(ended chan<- error) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := handler(srv, ss)
		ended <- err
		return err
	}
}

// chat opens a bidirectional stream and sends n messages on it.
func chat(t *testing.T, client testgrpc.TestServiceClient, n int) {
	t.Helper()
	s, err := client.FullDuplexCall(with(t))
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := s.Send(&testgrpc.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
}
