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
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/store/memory"
)

// delayed is a rule that lets calls wait for their departures.
func delayed(t *testing.T, l headgate.Limit, maxWait time.Duration) guard.Rule {
	t.Helper()
	r := limited(t, "slow", anyMethod, l, "ip")
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: maxWait}
	return r
}

// A call waits for its departure, unary or stream, and passes then.
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
	if took := time.Since(began); took < 3*interval {
		t.Errorf("four calls took %v, want at least %v", took, 3*interval)
	}
}

// A call that ends while it waits gives its place back.
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
			eventually(t, "the call waits", func() bool { return g.Waiting("slow") == 1 })
			cancel()
			expect(t, <-answered, codes.Canceled)
			expect(t, <-ended, codes.Canceled) // On the server, what it was ended with.
			if n := g.Waiting("slow"); n != 0 {
				t.Errorf("%d calls wait still", n)
			}
		})
	}
	if n := behind.calls.Load(); n != 1 {
		t.Errorf("the service saw %d calls, want 1", n)
	}
	// The places are free again: the next call's turn is an hour ahead, not three.
	_, _, err := call(with(t), client)
	if got := detailsOf(t, err); got.retry != time.Hour {
		t.Errorf("got %+v, want a turn in 1h", got)
	}
}

// A deadline before the departure is refused at once, and takes no place.
func TestDeadlineBeforeDeparture(t *testing.T) {
	g := newGuard(t, guard.Config{Rules: []guard.Rule{delayed(t, one(), 24*time.Hour)}})
	client := serve(t, g, new(service), grpclimit.Options{})
	if _, _, err := call(with(t), client); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, trailer, err := call(with(t), client) // Within 20 s.
		expect(t, err, codes.ResourceExhausted)
		want := details{reason: "WAIT_TOO_LONG", retry: time.Hour, violated: "slow"}
		if got := detailsOf(t, err); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if len(trailer["ratelimit"]) != 1 {
			t.Errorf("trailer %v: want ratelimit", trailer)
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

// A server that stops does not leave calls waiting.
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
	eventually(t, "the call waits", func() bool { return g.Waiting("slow") == 1 })
	server.Stop()
	expect(t, <-answered, codes.Unavailable)
	eventually(t, "nobody waits", func() bool { return g.Waiting("slow") == 0 })
}

// noReturn is a store that cannot give back.
type noReturn struct{ headgate.Store }

func (noReturn) Return(context.Context, []headgate.Receipt) error { return errBroken }

func (noReturn) ReturnLast(context.Context, *headgate.Receipt) (bool, error) { return false, errBroken }

// What could not be given back is told to the log, and not to the client.
func TestReturnFails(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, guard.Config{Store: noReturn{store}, Rules: []guard.Rule{delayed(t, one(), 24*time.Hour)}})
	logged := new(lines)
	ended := make(chan error, 8)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(
		watchUnary(ended), grpclimit.Unary(g, grpclimit.Options{Log: logged.logger()})))
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
	eventually(t, "the call waits", func() bool { return g.Waiting("slow") == 1 })
	cancel()
	err = <-ended
	expect(t, err, codes.Canceled)
	if errors.Is(err, errBroken) || strings.Contains(err.Error(), "10.0.0.7") {
		t.Errorf("the client is told %v", err)
	}
	if got := strings.Count(logged.String(), "10.0.0.7"); got != 1 {
		t.Errorf("%d lines tell of the store, want 1: %s", got, logged)
	}
}

// watchUnary tells how calls end, as the server has it.
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

// chat opens a stream both ways and says n things on it.
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
