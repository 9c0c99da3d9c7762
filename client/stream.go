package client

import (
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/proto/wire"
	"github.com/headgate/headgate/internal/readfile"
)

const (
	// method is the full name of the stream.
	method = "/headgate.v1.Decisions/Stream"
	// maxRequests bounds the requests of a message, and maxInFlight the messages that are not answered.
	maxRequests, maxInFlight = 1000, 2
	// maxReturns bounds the requests that wait to be given back; the server keeps so many receipts.
	maxReturns = 4096
	// leastBackoff and mostBackoff bound the pause before another attempt to open a stream.
	leastBackoff, mostBackoff = 10 * time.Millisecond, time.Second
	// leastPatience is the shortest time without an answer after which another server is asked.
	leastPatience = 100 * time.Millisecond
	// openPatience is the least time for a server to accept a stream.
	openPatience = time.Second
	// mostToken bounds the file of a token, in bytes.
	mostToken = 4096
	// lastPatience bounds a stream that the server drains.
	lastPatience = 5 * time.Second
	// retryShare is the part of all calls that may be sent on another stream, and leastRetries and
	// mostRetries bound what has been saved for it.
	retryShare, leastRetries, mostRetries = 0.1, 10.0, 1000.0
)

// stream is one stream to a server. Its sender and its receiver are goroutines of their own.
type stream struct {
	client *Client
	stream grpc.ClientStream
	cancel context.CancelFunc
	alarm  chan struct{} // wakes the sender; has room for one

	ending   atomic.Bool // No further message is sent.
	answered atomic.Bool

	mu       sync.Mutex // Guards the fields below.
	inFlight []message
	next     uint64 // the number of the next message
	returns  []place
	broken   bool
	watch    *time.Timer // calls check
}

// message is a message that is not answered yet.
type message struct {
	number uint64
	calls  []*call
	sent   time.Time
}

// run keeps a stream open until the client is closed.
func (k *Client) run() {
	pause, failed := leastBackoff, 0
	for turn := 0; k.life.Err() == nil; turn++ {
		s, err := k.open(k.conns[turn%len(k.conns)])
		if err == nil && s.serve() {
			pause, failed = leastBackoff, 0
			k.stats.switches.Add(1)
			continue
		}
		if failed++; failed < len(k.conns) {
			continue // Another server may answer.
		}
		k.setDown(true, wire.Mismatch(err, k.config.TLS != nil, "Config.TLS"))
		jittered := time.Duration((0.5 + rand.Float64()) * float64(pause))
		select {
		case <-time.After(jittered):
		case <-k.life.Done():
		}
		pause = min(2*pause, mostBackoff)
	}
}

// open opens a stream, and waits until its server accepts it.
func (k *Client) open(conn *grpc.ClientConn) (*stream, error) {
	ctx, cancel := context.WithCancel(k.life)
	ctx, err := k.authorize(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	late := time.AfterFunc(max(k.config.Timeout, openPatience), cancel)
	defer late.Stop()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(codec{}))
	if err != nil {
		cancel()
		return nil, err
	}
	if err := s.SendMsg(mem.SliceBuffer(wire.AppendNumber(nil, 3, 1))); err != nil { // RecvMsg has the reason.
		err = s.RecvMsg(new([]byte))
		cancel()
		return nil, err
	}
	if header, err := s.Header(); err == nil && header != nil {
		return &stream{client: k, stream: s, cancel: cancel, alarm: make(chan struct{}, 1)}, nil
	}
	err = s.RecvMsg(new([]byte)) // It has the reason.
	cancel()
	return nil, err
}

// authorize adds the token to a stream.
func (k *Client) authorize(ctx context.Context) (context.Context, error) {
	token := k.config.Token
	if k.config.TokenFile != "" {
		var err error
		if token, err = readfile.Line(k.config.TokenFile, mostToken, "token"); err != nil {
			return ctx, err
		}
	}
	if token == "" {
		return ctx, nil
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil
}

// serve sends the calls of the client until the stream ends. It reports whether the server has answered
// anything, or asked to end the stream.
func (s *stream) serve() bool {
	k := s.client
	k.ended.Go(s.receive)
	k.setStream(s)
	defer s.startWatch().Stop()
	for !s.ending.Load() && s.stream.Context().Err() == nil {
		s.send()
		select {
		case <-s.alarm:
		case <-s.stream.Context().Done():
		}
	}
	k.dropStream(s)
	if s.ending.Load() {
		k.ended.Go(s.finish)
		return true
	}
	s.cancel()
	return s.answered.Load()
}

// startWatch starts the timer that calls check.
func (s *stream) startWatch() *time.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = time.AfterFunc(s.client.config.Timeout, s.check)
	return s.watch
}

// wake makes the sender look for work.
func (s *stream) wake() {
	select {
	case s.alarm <- struct{}{}:
	default:
	}
}

// send sends messages while there are calls, and room for a message.
func (s *stream) send() {
	for !s.ending.Load() {
		s.mu.Lock()
		full, returns := s.broken || len(s.inFlight) >= maxInFlight, len(s.returns) > 0
		s.mu.Unlock()
		if full && !returns {
			return
		}
		var calls []*call
		if !full {
			runtime.Gosched() // Callers that are ready now join the message.
			calls = s.client.collect(s)
		}
		if len(calls) == 0 && !returns {
			return
		}
		if s.sendMessage(calls) != nil {
			s.cancel() // The receiver ends what is in flight.
			return
		}
	}
}

// sendMessage sends calls, and what is given back. From the moment that calls are in flight, an answer may end them
// and other requests use them, so they are encoded before.
func (s *stream) sendMessage(calls []*call) error {
	encoded := encode(calls)
	s.mu.Lock()
	if s.broken {
		s.mu.Unlock()
		failAll(calls)
		return io.ErrClosedPipe
	}
	*encoded = appendReturns(*encoded, s.returns)
	s.client.stats.returned.Add(uint64(len(s.returns)))
	s.returns = s.returns[:0]
	if len(calls) > 0 {
		s.inFlight = append(s.inFlight, message{s.next, calls, time.Now()})
		s.next++
		s.client.stats.messages.Add(1)
	}
	s.mu.Unlock()
	return s.stream.SendMsg(mem.NewBuffer(encoded, mem.DefaultBufferPool()))
}

// receive delivers answers until the stream ends.
func (s *stream) receive() {
	defer s.fail()
	var in []byte
	for goes := true; goes; {
		goes = s.stream.RecvMsg(&in) == nil && s.read(in)
	}
}

// read reads a response. It reports false if the server does not keep to the protocol.
func (s *stream) read(in []byte) bool {
	answers := 0
	for rest := in; len(rest) > 0; {
		f, n := wire.ReadField(rest)
		if n < 0 {
			return false
		}
		rest = rest[n:]
		switch f.ID {
		case wire.Bytes(1):
			answers++
		case wire.Varint(2):
			if f.Number() != 0 {
				s.ending.Store(true)
				s.wake()
				return true
			}
		case wire.Bytes(3):
			var r headgatev1.Reads
			if proto.Unmarshal(f.Bytes, &r) != nil {
				return false
			}
			s.client.setReads(&r)
			return true
		}
	}
	return s.answer(in, answers)
}

// answer delivers a message of answers to the oldest message in flight. That one stays in flight meanwhile: a stream
// that ends with none in flight gives nothing more back.
func (s *stream) answer(in []byte, answers int) bool {
	s.mu.Lock()
	if len(s.inFlight) == 0 || len(s.inFlight[0].calls) != answers {
		s.mu.Unlock()
		return false // The server answers what it was not asked; fail ends what is in flight.
	}
	m := s.inFlight[0]
	s.mu.Unlock()
	s.answered.Store(true)
	s.deliver(&m, in)
	s.mu.Lock()
	s.inFlight = append(s.inFlight[:0], s.inFlight[1:]...)
	s.mu.Unlock()
	s.wake()
	return true
}

// deliver gives answers to their callers, and gives back what callers do not need who have left.
func (s *stream) deliver(m *message, in []byte) {
	i := uint32(0)
	wire.EachMessage(in, 1, func(answer []byte) {
		c, at := m.calls[i], place{m.number, i}
		i++
		if !c.left.Load() {
			c.stream, c.at, c.data = s, at, append(c.data[:0], answer...)
			if !c.left.Swap(true) {
				c.answer <- true
				return
			}
		}
		if takes(answer) {
			s.giveBack(at)
		}
	})
	s.client.earn(len(m.calls))
}

// takes reports whether an answer says that its request took units.
func takes(answer []byte) bool {
	for len(answer) > 0 {
		f, n := wire.ReadField(answer)
		if n < 0 {
			return false
		}
		if f.ID == wire.Varint(1) {
			v := headgatev1.Verdict(f.Number())
			return v == headgatev1.Verdict_VERDICT_ALLOW || v == headgatev1.Verdict_VERDICT_WAIT
		}
		answer = answer[n:]
	}
	return false
}

// giveBack gives back what a request took. After the end of the stream its units stay counted.
func (s *stream) giveBack(at place) {
	s.mu.Lock()
	if !s.broken && len(s.returns) < maxReturns {
		s.returns = append(s.returns, at)
	}
	s.mu.Unlock()
	s.wake()
}

// check ends a stream whose server has not answered a message in time.
func (s *stream) check() {
	patience := max(2*s.client.config.Timeout, leastPatience)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken || s.ending.Load():
	case len(s.inFlight) > 0 && time.Since(s.inFlight[0].sent) > patience:
		s.cancel()
	default:
		s.watch.Reset(patience / 2)
	}
}

// finish ends a stream that the server drains: it waits for the last answers, and closes our side.
func (s *stream) finish() {
	time.AfterFunc(lastPatience, s.cancel) // A server that drains may hang.
	for {
		s.mu.Lock()
		done, returns := len(s.inFlight) == 0 || s.broken, len(s.returns) > 0
		s.mu.Unlock()
		if done {
			if returns {
				_ = s.sendMessage(nil)
			}
			_ = s.stream.CloseSend()
			return // The receiver ends with the stream.
		}
		select {
		case <-s.alarm:
		case <-s.stream.Context().Done():
			return
		}
	}
}

// fail ends the stream. What the server may have read is not sent again: the fallback decides.
func (s *stream) fail() {
	s.cancel()
	s.mu.Lock()
	s.broken = true
	lost := s.inFlight
	s.inFlight, s.returns = nil, nil
	s.mu.Unlock()
	for _, m := range lost {
		failAll(m.calls)
	}
	s.wake()
}

// failAll ends calls without an answer.
func failAll(calls []*call) {
	for _, c := range calls {
		if !c.left.Swap(true) {
			c.answer <- false
		}
	}
}
