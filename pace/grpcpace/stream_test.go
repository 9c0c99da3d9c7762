package grpcpace_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/grpcpace"
)

// fakeStream is a stream that answers with so many messages and then with an error.
type fakeStream struct {
	grpc.ClientStream

	ctx             context.Context
	messages        int
	err             error
	header, trailer metadata.MD
	sent            []time.Time
}

func (f *fakeStream) SendMsg(any) error {
	f.sent = append(f.sent, time.Now())
	return nil
}

func (f *fakeStream) RecvMsg(any) error {
	if f.messages--; f.messages >= 0 {
		return nil
	}
	return f.err
}

func (f *fakeStream) Header() (metadata.MD, error) { return f.header, nil }
func (f *fakeStream) Trailer() metadata.MD         { return f.trailer }

func (f *fakeStream) open(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	f.ctx = ctx
	return f, nil
}

var (
	both   = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	upload = &grpc.StreamDesc{ClientStreams: true}
)

// A stream takes one permit, and its messages none.
func TestStreamTakesOnePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacerOf(t, "mail", 1, time.Second)
		paced := pacing(t, p, grpcpace.Config{})
		start := time.Now()
		for i := range 3 {
			f := &fakeStream{messages: 2, err: io.EOF}
			s, err := paced.Stream(t.Context(), both, nil, send, f.open)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if err := s.SendMsg(nil); err != nil {
					t.Error(err)
				}
			}
			for range 3 {
				_ = s.RecvMsg(nil)
			}
			if elapsed := time.Since(start); elapsed != time.Duration(i)*time.Second || f.ctx.Err() == nil {
				t.Errorf("stream %d after %v; its context: %v", i, elapsed, f.ctx.Err())
			}
		}
		check(t, paced, backoff.Stats{Provider: "mail", Sent: 3, Heard: 3})
	})
}

// With PerMessage each message waits for its permit.
func TestPerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacerOf(t, "mail", 2, time.Second)
		paced := pacing(t, p, grpcpace.Config{PerMessage: true, Cost: func(_ string, m any) int64 { return int64(m.(int)) }})
		f := &fakeStream{err: io.EOF}
		s, err := paced.Stream(t.Context(), both, nil, send, f.open)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for i, want := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second} {
			if err := s.SendMsg([]int{1, 0, 1, 2, 1}[i]); err != nil {
				t.Error(err)
			}
			if got := f.sent[i].Sub(start); got != want {
				t.Errorf("message %d was sent after %v, want %v", i, got, want)
			}
		}
		check(t, paced, backoff.Stats{Provider: "mail", Sent: 5})
		if err := s.RecvMsg(nil); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := s.SendMsg(1); !errors.Is(err, io.EOF) || len(f.sent) != 5 {
			t.Errorf("after the end: %v, %d messages", err, len(f.sent))
		}
		check(t, paced, backoff.Stats{Provider: "mail", Sent: 5, Heard: 1})
	})
}

// A message that gets no permit ends its stream, with a status that says why.
func TestMessageWithoutPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacerOf(t, "mail", 1, time.Minute)
		paced := pacing(t, p, grpcpace.Config{PerMessage: true})
		f := &fakeStream{err: status.Error(codes.Canceled, "ended")}
		s, err := paced.Stream(within(t, 2*time.Second), both, nil, send, f.open)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(nil); err != nil {
			t.Error(err)
		}
		if err := s.SendMsg(nil); status.Code(err) != codes.ResourceExhausted || !errors.Is(err, pace.ErrTimeout) || f.ctx.Err() == nil {
			t.Errorf("%v; the stream's context: %v", err, f.ctx.Err())
		}
		if err := s.RecvMsg(nil); status.Code(err) != codes.Canceled || p.Stats().BrakedTo != 100 {
			t.Errorf("%v, and the pacer gives %d percent", err, p.Stats().BrakedTo)
		}
	})
}

// A server that ends the stream while a message waits leaves it unsent.
func TestEndWhileMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacerOf(t, "mail", 1, time.Minute)
		p.TryAcquire()
		paced := pacing(t, p, grpcpace.Config{PerMessage: true, MaxWait: time.Hour})
		f := &fakeStream{err: status.Error(codes.NotFound, "ended")}
		s, err := paced.Stream(t.Context(), both, nil, send, f.open)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() { waited <- s.SendMsg(nil) }()
		synctest.Wait()
		if err := s.RecvMsg(nil); status.Code(err) != codes.NotFound {
			t.Error(err)
		}
		if err := <-waited; !errors.Is(err, io.EOF) || len(f.sent) != 0 {
			t.Errorf("%v, and %d messages were sent", err, len(f.sent))
		}
	})
}

// What a server says in a stream's header counts when its first message comes, what it
// says in the trailer at the end.
func TestStreamHears(t *testing.T) {
	warning := metadata.Pairs("headgate-warning", "soft-limit")
	none := metadata.Pairs("ratelimit", `"a";r=0;t=9`)
	refused := failed(t, codes.ResourceExhausted, retryInfo(9*time.Second))
	for name, c := range map[string]struct {
		desc    *grpc.StreamDesc
		stream  fakeStream
		early   int // percent, after the first message
		percent int // at the end
		heard   backoff.Stats
	}{
		"nothing":                 {both, fakeStream{messages: 2, err: io.EOF}, 100, 100, backoff.Stats{Heard: 1}},
		"a warning in the header": {both, fakeStream{messages: 2, err: io.EOF, header: warning}, 80, 80, backoff.Stats{Heard: 2, Warned: 1}},
		"and more at the end":     {both, fakeStream{messages: 2, err: io.EOF, header: warning, trailer: none}, 80, 0, backoff.Stats{Heard: 2, Warned: 1, Spent: 1}},
		"no message":              {both, fakeStream{err: io.EOF, header: warning}, 80, 80, backoff.Stats{Heard: 1, Warned: 1}},
		"refused":                 {both, fakeStream{err: refused}, 0, 0, backoff.Stats{Heard: 1, Refused: 1}},
		"refused in the middle":   {both, fakeStream{messages: 2, err: refused}, 100, 0, backoff.Stats{Heard: 1, Refused: 1}},
		"one answer":              {upload, fakeStream{messages: 1, err: io.EOF, header: warning}, 80, 80, backoff.Stats{Heard: 1, Warned: 1}},
		"one answer's trailer":    {upload, fakeStream{messages: 1, err: io.EOF, trailer: none}, 0, 0, backoff.Stats{Heard: 1, Spent: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pacerOf(t, "mail", 100, time.Second)
				paced := pacing(t, p, grpcpace.Config{})
				s, err := paced.Stream(t.Context(), c.desc, nil, send, c.stream.open)
				if err != nil {
					t.Fatal(err)
				}
				_ = s.RecvMsg(nil)
				if got := p.Stats().BrakedTo; got != c.early {
					t.Errorf("after a message the pacer gives %d percent, want %d", got, c.early)
				}
				for range 4 {
					_ = s.RecvMsg(nil)
				}
				if got := p.Stats().BrakedTo; got != c.percent {
					t.Errorf("at the end the pacer gives %d percent, want %d", got, c.percent)
				}
				c.heard.Provider, c.heard.Sent = "mail", 1
				check(t, paced, c.heard)
			})
		})
	}
}

// A stream that cannot begin is an answer as well.
func TestStreamFails(t *testing.T) {
	for _, detail := range []protoadapt.MessageV1{retryInfo(9 * time.Second), &errdetails.QuotaFailure{}} {
		synctest.Test(t, func(t *testing.T) {
			p := pacerOf(t, "mail", 100, time.Second)
			paced := pacing(t, p, grpcpace.Config{})
			want := failed(t, codes.ResourceExhausted, detail)
			var ended func() error
			s, err := paced.Stream(t.Context(), both, nil, send,
				func(inner context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
					ended = inner.Err
					return nil, want
				})
			if s != nil || !errors.Is(err, want) || ended() == nil || p.Stats().BrakedTo != 0 {
				t.Errorf("%v, %v; the pacer gives %d percent", s, err, p.Stats().BrakedTo)
			}
		})
	}
}
