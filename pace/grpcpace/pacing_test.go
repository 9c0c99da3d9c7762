package grpcpace_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/grpcpace"
)

func TestMain(m *testing.M) { leak.Main(m) }

const send = "/mail.v1.Mail/Send"

// pacerOf makes a pacer of so many calls per window, which the test closes.
func pacerOf(tb testing.TB, name string, limit int64, per time.Duration) *pace.Pacer {
	tb.Helper()
	plan, err := schedule.Even(limit, per, 1, 0)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := pace.New(pace.Config{Provider: name, Source: pace.Static(plan), Logger: slog.New(slog.DiscardHandler), MaxWaiters: 100})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	if err := p.Ready(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return p
}

// pacing makes a Pacing for all methods.
func pacing(tb testing.TB, p *pace.Pacer, c grpcpace.Config) *grpcpace.Pacing {
	tb.Helper()
	c.Methods = map[string]*pace.Pacer{"*": p}
	paced, err := grpcpace.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return paced
}

// within gives a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// server stands for a connection: it answers calls with an error and metadata.
type server struct {
	err             error
	header, trailer metadata.MD
	calls           int
}

func (s *server) invoke(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	s.calls++
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = s.header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = s.trailer
		}
	}
	return s.err
}

// failed makes a status with details.
func failed(t *testing.T, code codes.Code, details ...protoadapt.MessageV1) error {
	t.Helper()
	s, err := status.New(code, "no").WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

func retryInfo(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

// A call waits for the next window, within its deadline, and one that cannot be made
// in time fails at once, with a status that says so.
func TestWaitsWithinDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		paced := pacing(t, pacerOf(t, "mail", 1, 2*time.Minute), grpcpace.Config{})
		brief := pacing(t, pacerOf(t, "brief", 1, 2*time.Minute), grpcpace.Config{MaxWait: time.Second})
		start := time.Now()
		for _, c := range []struct {
			paced    *grpcpace.Pacing
			deadline time.Duration
			served   bool
			elapsed  time.Duration
		}{
			{paced, 0, true, 0},
			{paced, 0, false, 0}, // No deadline: within a minute.
			{paced, 2 * time.Minute, false, 0},
			{brief, 0, true, 0},
			{brief, 5 * time.Minute, false, 0},
			{paced, 3 * time.Minute, true, 2 * time.Minute},
		} {
			ctx := t.Context()
			if c.deadline > 0 {
				ctx = within(t, c.deadline)
			}
			began := time.Now()
			err := c.paced.Unary(ctx, send, nil, nil, nil, s.invoke)
			if elapsed := time.Since(began); elapsed != c.elapsed || (err == nil) != c.served {
				t.Errorf("deadline %v: %v after %v, want %v", c.deadline, err, elapsed, c.elapsed)
			}
			if c.served {
				continue
			}
			late, ok := errortype.As[*pace.TimeoutError](err)
			if !ok || !late.Opens.Equal(start.Add(2*time.Minute)) || !errors.Is(err, pace.ErrTimeout) {
				t.Errorf("deadline %v: %v, %+v", c.deadline, err, late)
			}
			reported, _ := status.FromError(err)
			info, _ := reported.Details()[0].(*errdetails.RetryInfo)
			if reported.Code() != codes.ResourceExhausted || info.GetRetryDelay().AsDuration() != 2*time.Minute || err.Error() != reported.Err().Error() {
				t.Errorf("deadline %v: %v with %v", c.deadline, err, reported.Details())
			}
		}
		if s.calls != 3 {
			t.Errorf("%d calls were made, want 3", s.calls)
		}
	})
}

// The status of each reason for which a call is not made.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		units := int64(1)
		closed := pacerOf(t, "closed", 1, time.Second)
		closed.Close()
		full := pacerOf(t, "full", 1, time.Second)
		full.TryAcquire()
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			all.Go(func() { _ = full.Acquire(ctx, pace.Forever) })
		}
		synctest.Wait()
		open := pacerOf(t, "open", 1, time.Second)
		strict, err := grpcpace.New(grpcpace.Config{Strict: true, Pacer: func(string, string) *pace.Pacer { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		cost := grpcpace.Config{Cost: func(string, any) int64 { return units }}
		ended, end := context.WithCancel(t.Context())
		end()
		overdue, stop := context.WithDeadline(t.Context(), time.Now())
		defer stop()
		for name, c := range map[string]struct {
			paced *grpcpace.Pacing
			ctx   context.Context
			units int64
			code  codes.Code
			is    error
		}{
			"too many waiters": {pacing(t, full, cost), within(t, time.Hour), 1, codes.ResourceExhausted, pace.ErrTooManyWaiters},
			"closed":           {pacing(t, closed, cost), t.Context(), 1, codes.Unavailable, pace.ErrClosed},
			"too large":        {pacing(t, open, cost), t.Context(), 2, codes.FailedPrecondition, pace.ErrTooLarge},
			"less than 0":      {pacing(t, open, cost), t.Context(), -1, codes.Internal, nil},
			"a limit of 0":     {pacing(t, pacerOf(t, "shut", 0, time.Second), cost), t.Context(), 1, codes.ResourceExhausted, pace.ErrTimeout},
			"no pacer":         {strict, t.Context(), 1, codes.FailedPrecondition, grpcpace.ErrNoPacer},
			"cancelled":        {pacing(t, open, cost), ended, 1, codes.Canceled, context.Canceled},
			"overdue":          {pacing(t, open, cost), overdue, 1, codes.DeadlineExceeded, context.DeadlineExceeded},
		} {
			units = c.units
			desc := &grpc.StreamDesc{}
			errs := []error{c.paced.Unary(c.ctx, send, nil, nil, conn(t), s.invoke)}
			_, err := c.paced.Stream(c.ctx, desc, conn(t), send, nil)
			for _, err := range append(errs, err) {
				if n := len(status.Convert(err).Details()); n > 0 {
					t.Errorf("%s: %d details, and nobody knows a time", name, n)
				}
				if status.Code(err) != c.code || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%s: %v, want %v", name, err, c.code)
				}
			}
		}
		if s.calls != 0 {
			t.Errorf("%d calls were made", s.calls)
		}
		cancel()
		all.Wait()
	})
}

// conn is a connection that is never used.
func conn(t *testing.T) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:mail", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// What servers say, and how far that slows down.
func TestHears(t *testing.T) {
	quota := &errdetails.QuotaFailure{}
	for name, c := range map[string]struct {
		server  server
		percent int
		heard   backoff.Stats
	}{
		"served":                     {server{}, 100, backoff.Stats{}},
		"failed":                     {server{err: failed(t, codes.Internal, retryInfo(9*time.Second))}, 100, backoff.Stats{}},
		"no status":                  {server{err: errors.New("no status")}, 100, backoff.Stats{}},
		"exhausted, and a time":      {server{err: failed(t, codes.ResourceExhausted, quota, retryInfo(9*time.Second))}, 0, backoff.Stats{Refused: 1}},
		"unavailable, and a time":    {server{err: failed(t, codes.Unavailable, retryInfo(9*time.Second))}, 0, backoff.Stats{Refused: 1}},
		"unavailable":                {server{err: failed(t, codes.Unavailable)}, 100, backoff.Stats{}},
		"a message that is too long": {server{err: failed(t, codes.ResourceExhausted)}, 100, backoff.Stats{}},
		"a quota":                    {server{err: failed(t, codes.ResourceExhausted, quota)}, 0, backoff.Stats{Refused: 1}},
		"a time that is none":        {server{err: failed(t, codes.ResourceExhausted, &errdetails.RetryInfo{})}, 100, backoff.Stats{}},
		"a negative time":            {server{err: failed(t, codes.ResourceExhausted, retryInfo(-1))}, 100, backoff.Stats{}},
		"retry-after":                {server{err: failed(t, codes.ResourceExhausted), trailer: metadata.Pairs("retry-after", "9")}, 0, backoff.Stats{Refused: 1}},
		"pushback":                   {server{err: failed(t, codes.Unavailable), trailer: metadata.Pairs("grpc-retry-pushback-ms", "900")}, 0, backoff.Stats{Refused: 1}},
		"none left, in the header":   {server{header: metadata.Pairs("ratelimit", `"a";r=0;t=9`)}, 0, backoff.Stats{Spent: 1}},
		"none left, in the trailer":  {server{trailer: metadata.Pairs("ratelimit", `"a";r=0;t=9`)}, 0, backoff.Stats{Spent: 1}},
		"none left of a failed call": {server{err: failed(t, codes.NotFound), trailer: metadata.Pairs("ratelimit", `"a";r=0;t=9`)}, 0, backoff.Stats{Spent: 1}},
		"a warning":                  {server{header: metadata.Pairs("headgate-warning", `soft-limit; policy="a"`)}, 80, backoff.Stats{Warned: 1}},
		"the stronger of two": {
			server{header: metadata.Pairs("headgate-warning", `soft-limit`), trailer: metadata.Pairs("ratelimit", `"a";r=0;t=9`)}, 0, backoff.Stats{Spent: 1},
		},
	} {
		c.heard.Provider, c.heard.Sent, c.heard.Heard = "mail", 1, 1
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pacerOf(t, "mail", 100, time.Second)
				paced := pacing(t, p, grpcpace.Config{})
				if err := paced.Unary(t.Context(), send, nil, nil, nil, c.server.invoke); err != c.server.err { //nolint:errorlint // It is that very one.
					t.Errorf("the call ends with %v", err)
				}
				check(t, paced, c.heard)
				if got := p.Stats().BrakedTo; got != c.percent {
					t.Errorf("the pacer gives %d percent, want %d", got, c.percent)
				}
			})
		})
	}
}

// check holds that a Pacing of one provider has counted just so.
func check(t *testing.T, paced *grpcpace.Pacing, want backoff.Stats) {
	t.Helper()
	if got := paced.Stats(); len(got) != 1 || got[0] != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// A refusal of our own is none of the server's: two Pacings in a row do not brake each other.
func TestOwnRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		narrow, wide := pacerOf(t, "narrow", 1, time.Minute), pacerOf(t, "wide", 100, time.Second)
		inner, outer := pacing(t, narrow, grpcpace.Config{MaxWait: time.Second}), pacing(t, wide, grpcpace.Config{})
		narrow.TryAcquire()
		invoke := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			return inner.Unary(ctx, method, req, reply, cc, s.invoke, opts...)
		}
		if err := outer.Unary(t.Context(), send, nil, nil, nil, invoke); status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
		if got := wide.Stats().BrakedTo; got != 100 {
			t.Errorf("the outer pacer gives %d percent", got)
		}
	})
}

// The caller's options are its own.
func TestOptions(t *testing.T) {
	s := server{header: metadata.Pairs("a", "1"), trailer: metadata.Pairs("b", "2")}
	paced := pacing(t, pacerOf(t, "mail", 100, time.Second), grpcpace.Config{})
	var header, trailer metadata.MD
	opts := make([]grpc.CallOption, 0, 8)
	opts = append(opts, grpc.Header(&header), grpc.Trailer(&trailer))
	if err := paced.Unary(t.Context(), send, nil, nil, nil, s.invoke, opts...); err != nil {
		t.Fatal(err)
	}
	if len(header["a"]) != 1 || len(trailer["b"]) != 1 || opts[:3][2] != nil {
		t.Errorf("header %v, trailer %v, options %v", header, trailer, opts[:4])
	}
}
