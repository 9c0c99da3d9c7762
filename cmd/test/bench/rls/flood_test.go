package rls

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// answer is a service in the form of a function. number counts its calls from 1.
type answer struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	calls  atomic.Int64
	decide func(ctx context.Context, number int64) error
}

func (a *answer) ShouldRateLimit(ctx context.Context, _ *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	if err := a.decide(ctx, a.calls.Add(1)); err != nil {
		return nil, err
	}
	return &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}, nil
}

// listen serves calls by a function.
func listen(t *testing.T, decide func(ctx context.Context, number int64) error) (addr string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(s, &answer{decide: decide})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // It ends with Stop.
	}()
	t.Cleanup(func() { s.Stop(); <-ended })
	return l.Addr().String()
}

// connected are callers of a service.
func connected(t *testing.T, decide func(ctx context.Context, number int64) error) *callers {
	t.Helper()
	c, closes, err := dial(listen(t, decide))
	for _, f := range closes {
		t.Cleanup(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFlood checks that a flood does not wait for answers: the server answers only when all calls of the turn
// have arrived. It then refuses every fourth call.
func TestFlood(t *testing.T) {
	const calls = 200
	arrived := make(chan struct{})
	addr := listen(t, func(ctx context.Context, number int64) error {
		if md, _ := metadata.FromIncomingContext(ctx); strings.Join(md["authorization"], ",") != "Bearer "+tokenOf(0) {
			return status.Errorf(codes.Unauthenticated, "the token is %q", md["authorization"])
		}
		if number == calls {
			close(arrived)
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
		if number%4 == 0 {
			return status.Error(codes.ResourceExhausted, "above the limit")
		}
		return nil
	})
	var out bytes.Buffer
	if err := Flood(t.Context(), addr, strings.NewReader("200\n100\n"), &out); err != nil {
		t.Fatal(err)
	}
	results := json.NewDecoder(&out)
	for _, n := range []int{calls, calls / 2} {
		var got flooded
		if err := results.Decode(&got); err != nil || got.Calls != n || got.Refused != n/4 || got.Allowed != n-n/4 {
			t.Errorf("a turn of %d calls: got %+v, error %v, want a quarter refused", n, got, err)
		}
		if least := time.Duration(n-1) * time.Second / floodRate; got.Took < least {
			t.Errorf("a turn of %d calls took %v, want at least %v", n, got.Took, least)
		}
	}
}

// TestFloodAtItsBound checks that calls without answers end the flood when they reach the bound.
func TestFloodAtItsBound(t *testing.T) {
	c := connected(t, func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() })
	const most = connections * floodStreams
	turn, err := c.flood(t.Context(), 2*most, time.Microsecond)
	if err == nil || !strings.Contains(err.Error(), "1000 calls in flight") || turn.Allowed+turn.Refused != 0 {
		t.Errorf("got %+v and the error %v, want the error of 1000 calls in flight", turn, err)
	}
}

func TestWrongAnswers(t *testing.T) {
	refuse := func(code codes.Code, which int64) *callers {
		return connected(t, func(_ context.Context, number int64) error {
			if number == which {
				return status.Error(code, "no")
			}
			return nil
		})
	}
	if turn, err := refuse(codes.Unauthenticated, 5).flood(t.Context(), 10, time.Microsecond); status.Code(err) != codes.Unauthenticated {
		t.Errorf("flood: got %+v and the error %v, want UNAUTHENTICATED", turn, err)
	}
	if _, _, err := refuse(codes.ResourceExhausted, 5).others(t.Context(), 10*time.Millisecond); err == nil {
		t.Error("a caller within its limit was refused: got no error")
	}
	took, delays, err := refuse(codes.OK, 0).others(t.Context(), 10*time.Millisecond)
	if err != nil || len(took) != 10 || len(delays) != 10 {
		t.Fatalf("got %d times, %d delays and the error %v, want 10 of each", len(took), len(delays), err)
	}
	for i := range took {
		if delays[i] < 0 || took[i] <= delays[i] {
			t.Errorf("call %d: got a latency of %v and a delay of %v, want 0 ≤ delay < latency", i, took[i], delays[i])
		}
	}
}

func TestShareOfTheFlood(t *testing.T) {
	const burst, second = floodLimit, floodLimit // Calls within the limit at once, and in a second.
	for _, c := range []struct {
		name string
		turn flooded
		ok   bool
	}{
		{"the limit in a second", flooded{floodRate, burst + second, floodRate - burst - second, time.Second}, true},
		{"one call more", flooded{floodRate, burst + second + 1, floodRate - burst - second - 1, time.Second}, false},
		{"the same, but the flood was delayed", flooded{floodRate, burst + second + 1, floodRate - burst - second - 1, 2 * time.Second}, true},
		{"less than the limit", flooded{floodRate, second, floodRate - second, time.Second}, true},
		{"no call passed", flooded{floodRate, 0, floodRate, time.Second}, false},
		{"a call has no answer", flooded{floodRate, second, floodRate - second - 1, time.Second}, false},
		{"no limit", flooded{floodRate, floodRate, 0, time.Second}, false},
	} {
		if err := c.turn.limited(); (err == nil) != c.ok {
			t.Errorf("%s: got the error %v, want ok = %v", c.name, err, c.ok)
		}
		if err := c.turn.unlimited(); (err == nil) != (c.turn.Allowed == c.turn.Calls) {
			t.Errorf("%s, at the bare server: got the error %v", c.name, err)
		}
	}
}
