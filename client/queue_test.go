package client

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// TestRetries: of the calls that waited for a stream that broke, as many go on as a tenth of all calls has
// earned. Those that waited for a stream that the server drained all go on.
func TestRetries(t *testing.T) {
	for _, row := range []struct {
		name                 string
		ending               bool
		answered, wait, kept int
	}{
		{"a broken stream, at the begin", false, 0, 30, 10},
		{"a broken stream, after 100 answers", false, 100, 30, 20},
		{"a broken stream, after many answers", false, 1_000_000, 3000, 1000},
		{"few calls", false, 0, 7, 7},
		{"a drain", true, 0, 30, 30},
	} {
		k := &Client{config: Config{MaxQueue: 10_000}, retries: leastRetries}
		s := &stream{client: k, alarm: make(chan struct{}, 1)}
		k.stream = s
		k.earn(row.answered)
		var calls []*call
		for range row.wait {
			c := &call{answer: make(chan bool, 1)}
			if calls = append(calls, c); !k.enqueue(c) {
				t.Fatal("the queue is full")
			}
		}
		s.ending.Store(row.ending)
		k.dropStream(s)
		failed := 0
		for _, c := range calls {
			if c.left.Load() {
				failed++
			}
		}
		if len(k.queue) != row.kept || failed != row.wait-row.kept || k.stream != nil {
			t.Errorf("%s: %d calls go on and %d fail, want %d and %d", row.name, len(k.queue), failed, row.kept, row.wait-row.kept)
		}
	}
}

// TestLeaversAreNotSent: a call whose caller has left is not sent, and a message has at most 1,000 requests.
func TestLeaversAreNotSent(t *testing.T) {
	k := &Client{config: Config{MaxQueue: 10_000}}
	s := &stream{client: k, alarm: make(chan struct{}, 1)}
	k.stream = s
	for i := range 2500 {
		c := &call{}
		c.left.Store(i%2 == 0)
		k.enqueue(c)
	}
	if first, second, third := len(k.collect(s)), len(k.collect(s)), len(k.collect(s)); first != 1000 || second != 250 || third != 0 {
		t.Errorf("messages of %d, %d and %d calls", first, second, third)
	}
	k.enqueue(&call{})
	if got := len(k.collect(&stream{})); got != 0 {
		t.Errorf("a stream that was replaced takes %d calls", got)
	}
}

// TestGarbage: a server that answers more than it was asked, or too little, harms no caller.
func TestGarbage(t *testing.T) {
	for answers := range 4 {
		k := &Client{}
		ctx, cancel := context.WithCancel(t.Context())
		c := &call{answer: make(chan bool, 1)}
		s := &stream{client: k, alarm: make(chan struct{}, 1), cancel: cancel, inFlight: []message{{calls: []*call{c}}}}
		s.stream = &scripted{ctx: ctx, answers: answers}
		s.receive()
		if m := <-c.answer; m != (answers == 1) {
			t.Errorf("%d answers to one call: the caller gets %v", answers, m)
		}
		if ctx.Err() == nil {
			t.Errorf("%d answers: the stream goes on", answers)
		}
	}
}

// scripted is a stream whose server sends messages with a number of answers, without a question.
type scripted struct {
	grpc.ClientStream

	ctx     context.Context
	answers int
}

// RecvMsg implements grpc.ClientStream.
func (s *scripted) RecvMsg(m any) error {
	out := headgatev1.DecideResponse{Answers: make([]*headgatev1.Answer, s.answers)}
	for i := range out.GetAnswers() {
		out.Answers[i] = &headgatev1.Answer{Verdict: headgatev1.Verdict_VERDICT_DENY}
	}
	encoded, err := proto.Marshal(&out)
	*m.(*[]byte) = encoded
	return err
}

// TestEagerServer: a server that answers before it was asked harms nothing: answered calls are used for other requests
// at once. The race detector sees a message that is encoded too late.
func TestEagerServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k := &Client{config: Config{Timeout: time.Minute, MaxQueue: 100}, life: ctx}
	s := &stream{client: k, alarm: make(chan struct{}, 1), cancel: cancel}
	s.stream = &eager{ctx: ctx, asked: s}
	var serving, callers sync.WaitGroup
	serving.Go(func() { s.serve() })
	for range 8 {
		callers.Go(func() {
			for range 500 {
				a, err := k.Decide(ctx, &Request{Path: "/a"})
				if err != nil || a.Local != (a.Verdict == headgate.Deny) { // Before the stream serves, there is none.
					t.Errorf("got %+v, %v", a, err)
				}
			}
		})
	}
	callers.Wait()
	cancel()
	serving.Wait()
	k.ended.Wait()
}

// eager is a stream whose server admits each message as soon as it is in flight, before it is sent.
type eager struct {
	grpc.ClientStream

	ctx   context.Context
	asked *stream
}

// Context implements grpc.ClientStream.
func (e *eager) Context() context.Context { return e.ctx }

// SendMsg implements grpc.ClientStream.
func (*eager) SendMsg(any) error { return nil }

// RecvMsg implements grpc.ClientStream.
func (e *eager) RecvMsg(m any) error {
	for e.ctx.Err() == nil {
		e.asked.mu.Lock()
		n := 0
		if len(e.asked.inFlight) > 0 {
			n = len(e.asked.inFlight[0].calls)
		}
		e.asked.mu.Unlock()
		if n > 0 {
			out := headgatev1.DecideResponse{}
			for range n {
				out.Answers = append(out.Answers, &headgatev1.Answer{Verdict: headgatev1.Verdict_VERDICT_ALLOW})
			}
			encoded, err := proto.Marshal(&out)
			*m.(*[]byte) = encoded
			return err
		}
		runtime.Gosched()
	}
	return e.ctx.Err()
}
