package client

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// TestTwoMessagesInFlight: a lone call is sent at once. At most two messages are in flight, and callers that come meanwhile
// share the next one.
func TestTwoMessagesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := &Client{config: Config{Timeout: time.Hour, MaxQueue: 100}, life: ctx}
		s := &stream{client: k, alarm: make(chan struct{}, 1), cancel: cancel}
		server := &patient{ctx: ctx, asked: s, answer: make(chan struct{})}
		s.stream = server
		var serving, callers sync.WaitGroup
		serving.Go(func() { s.serve() })
		synctest.Wait() // The stream takes calls.
		call := func(n int, want ...int) {
			t.Helper()
			for range n {
				callers.Go(func() {
					if a, err := k.Decide(ctx, &Request{Path: "/a"}); err != nil || a.Local {
						t.Errorf("got %+v, %v", a, err)
					}
				})
			}
			synctest.Wait()
			if !slices.Equal(server.sent, want) {
				t.Errorf("messages with %v calls were sent, want %v", server.sent, want)
			}
		}
		call(1, 1)
		call(1, 1, 1)
		call(7, 1, 1)
		call(1, 1, 1)
		server.answer <- struct{}{}
		call(0, 1, 1, 8)
		call(2, 1, 1, 8)
		server.answer <- struct{}{}
		call(0, 1, 1, 8, 2)
		server.answer <- struct{}{}
		server.answer <- struct{}{}
		callers.Wait()
		cancel()
		serving.Wait()
		k.ended.Wait()
	})
}

// patient is a stream whose server admits the oldest message when it is told to.
type patient struct {
	grpc.ClientStream

	ctx    context.Context
	asked  *stream
	answer chan struct{}
	sent   []int // the calls of each message
}

// Context implements grpc.ClientStream.
func (p *patient) Context() context.Context { return p.ctx }

// SendMsg implements grpc.ClientStream.
func (p *patient) SendMsg(any) error {
	p.asked.mu.Lock()
	defer p.asked.mu.Unlock()
	newest := p.asked.inFlight[len(p.asked.inFlight)-1]
	p.sent = append(p.sent, len(newest.calls))
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (p *patient) RecvMsg(m any) error {
	select {
	case <-p.answer:
	case <-p.ctx.Done():
		return io.EOF
	}
	p.asked.mu.Lock()
	out := headgatev1.DecideResponse{}
	for range p.asked.inFlight[0].calls {
		out.Answers = append(out.Answers, &headgatev1.Answer{Verdict: headgatev1.Verdict_VERDICT_ALLOW})
	}
	p.asked.mu.Unlock()
	encoded, err := proto.Marshal(&out)
	*m.(*[]byte) = encoded
	return err
}
