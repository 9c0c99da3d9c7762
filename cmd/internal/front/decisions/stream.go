package decisions

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/cmd/internal/rpc"
)

// stream is one open stream. One goroutine reads its messages. Without a shared store it also decides
// them and sends the responses: a goroutine would cost more than the decision. With a shared store,
// each message has a goroutine, and another one sends the responses in order.
type stream struct {
	service *Service
	stream  grpc.ServerStream
	account *rpc.Account
	access  *access.Call
	session *access.Session // nil without auth

	asked    atomic.Bool // The client shall end the stream.
	sending  sync.Mutex  // Held during a send; guards told and backlog.
	notified bool        // The client knows.
	backlog  *rpc.Backlog

	// returning is closed when all returns of the messages so far have taken effect; nil before the first one. Only serveTogether uses it.
	returning chan struct{}

	watching atomic.Bool   // The client wants to know what the rules read.
	reads    *remote.Reads // that it knows; guarded by sending

	mu     sync.Mutex // Guards the fields below.
	kept   receipts
	bytes  int64 // of kept, as far as the service counts them
	expiry *time.Timer
	closed bool
}

// endGrace is the time of a client to end its stream, and to open another one with another token, after its token has
// ended.
const endGrace = time.Second

// serve serves a stream until its client ends it, or its token has ended.
func (s *Service) serve(conn grpc.ServerStream) error {
	account := rpc.AccountOf(conn.Context())
	x := &stream{service: s, stream: conn, account: account, access: access.CallOf(conn.Context()), backlog: rpc.NewBacklog(account)}
	ended := make(chan struct{})
	var err error
	if x.session, err = x.access.Open(func() {
		time.AfterFunc(endGrace, func() { close(ended) }) // Before askToEnd, which may wait for the client.
		x.askToEnd()
	}); err != nil {
		return access.Status(err)
	}
	defer x.session.Close()
	if err := conn.SendHeader(nil); err != nil { // So that a client knows that the stream is accepted.
		return err
	}
	if x.session == nil {
		return x.serve()
	}
	served := make(chan error, 1)
	go func() { served <- x.serve() }()
	select {
	case err := <-served:
		return err
	case <-ended: // When this returns, gRPC ends the stream, and serve returns too.
		x.access.Refused(access.ErrWrongCredentials)
		return access.Status(access.ErrWrongCredentials)
	}
}

// serve answers messages until the client ends the stream.
func (x *stream) serve() error {
	s := x.service
	if s.add(x) {
		x.askToEnd()
	}
	defer x.close()
	if s.options.MaxAge > 0 {
		defer time.AfterFunc(jitter(s.options.MaxAge), x.askToEnd).Stop()
	}
	var err error
	if s.options.Shared {
		err = x.serveTogether()
	} else {
		err = x.serveInTurn()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// jitter adds or subtracts up to a tenth at random: the clients of one restart would open their streams again
// at one moment.
func jitter(age time.Duration) time.Duration {
	const part = 10
	return age - age/part + rand.N(2*age/part+1)
}

// serveInTurn answers one message after the other.
func (x *stream) serveInTurn() error {
	for {
		c, err := x.receive()
		if err != nil {
			return err
		}
		x.giveBack(c)
		response := x.decide(c)
		if response == nil {
			continue
		}
		if err := x.send(response); err != nil {
			return err
		}
	}
}

// reply is the response to a message. It is nil for a message without requests, and for one that did not come.
type reply struct {
	done     chan struct{}
	response *rpc.Response
}

// serveTogether decides several messages at a time, each after the returns of all messages before it. It reads a
// message only when fewer than maxUnanswered are not answered, those in the queue and one that is sent. A message that
// was read is decided at once, apart from that wait: it has memory and requests of all streams together, and a client
// that does not read its answers must not keep others waiting.
func (x *stream) serveTogether() error {
	queue := make(chan *reply, maxUnanswered-1)
	var working sync.WaitGroup
	working.Go(func() { x.sendInOrder(queue) })
	defer working.Wait()
	defer close(queue)
	for {
		r := &reply{done: make(chan struct{})}
		queue <- r
		c, err := x.receive()
		if err != nil {
			close(r.done)
			return err
		}
		given := x.returning // by messages before
		if len(c.taken) > 0 {
			x.returning = make(chan struct{})
		}
		own := x.returning
		working.Go(func() {
			x.giveBack(c)
			if given != nil {
				<-given
			}
			if own != given {
				close(own)
			}
			r.response = x.decide(c)
			close(r.done)
		})
	}
}

// sendInOrder sends responses in the order of their messages. After an error, nothing more is sent: the
// stream has ended, and its reader gets the error too.
func (x *stream) sendInOrder(queue <-chan *reply) {
	var failed error
	for r := range queue {
		<-r.done
		if failed == nil && r.response != nil {
			failed = x.send(r.response)
		}
	}
}

// receive reads the next message, and waits until it may be decided.
func (x *stream) receive() (*call, error) {
	s := x.service
	c := s.call(x.stream.Context(), x.account, x.access)
	c.session = x.session
	err := x.stream.RecvMsg(c)
	if err == nil {
		err = c.fault
	}
	if err == nil && c.watch {
		x.watching.Store(true)
		err = x.send(nil)
	}
	if err == nil && c.n == 0 && len(c.returns) == 0 && !c.watch {
		err = status.Error(codes.InvalidArgument, "the message has no request and gives nothing back")
	} else if err == nil && c.n > 0 {
		err = s.pending.Acquire(c.ctx, int64(c.n))
	}
	if err != nil {
		s.release(c)
		return nil, err
	}
	x.takeReceipts(c)
	return c, nil
}

// giveBack gives back what the message returns.
func (x *stream) giveBack(c *call) {
	if len(c.taken) > 0 {
		// The units stay counted if this fails, and the client is gone when ctx ends.
		_ = x.service.guard.GiveBack(context.WithoutCancel(c.ctx), c.taken)
		x.service.stats.returned.Add(uint64(len(c.taken)))
	}
}

// decide decides the requests of a message, keeps their receipts, and ends the message. The response is nil for a message without
// requests.
func (x *stream) decide(c *call) *rpc.Response {
	s := x.service
	defer s.release(c)
	if c.n == 0 {
		return nil
	}
	defer s.pending.Release(int64(c.n))
	taken, n := x.memory(c.n), 0
	_ = c.decide(func(b *remote.Batch) { n += b.Take(&taken) }) // Each answer has the error.
	x.keep(c, taken, n)
	return rpc.NewResponse(c.account, c.encoded)
}

// sendReads tells a client that wants to know what the rules read, if it does not know. The caller holds sending.
func (x *stream) sendReads() error {
	if !x.watching.Load() {
		return nil
	}
	now := remote.ReadsOf(x.service.guard)
	if x.reads != nil && x.reads.Same(now) {
		return nil
	}
	x.reads = now
	return x.write(rpc.NewResponse(x.account, encodeReads(now)))
}

// send sends a response, or nothing but what the rules read.
func (x *stream) send(r *rpc.Response) error {
	x.sending.Lock()
	err := x.sendReads()
	if err == nil && r != nil {
		err = x.write(r)
	}
	if err == nil {
		err = x.tell()
	}
	x.sending.Unlock()
	if x.asked.Load() && err == nil { // askToEnd did not wait for this send.
		x.askToEnd()
	}
	return err
}

// tell tells the client to end the stream, once, if it shall. The caller holds sending.
func (x *stream) tell() error {
	if !x.asked.Load() || x.notified {
		return nil
	}
	x.notified = true
	return x.write(rpc.NewResponse(x.account, draining()))
}

// write sends a response, which counts until the client has read it. The caller holds sending.
func (x *stream) write(r *rpc.Response) error {
	x.backlog.Add(r)
	return x.stream.SendMsg(r)
}

// askToEnd asks the client to end the stream. It does not wait for a client that does not read.
func (x *stream) askToEnd() {
	x.asked.Store(true)
	if x.sending.TryLock() {
		defer x.sending.Unlock()
		_ = x.tell() // The reader gets the error too.
	}
}

// close drops what the stream kept.
func (x *stream) close() {
	x.service.remove(x)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.expiry != nil {
		x.expiry.Stop()
	}
	x.service.receipts.Add(-int64(x.kept.count))
	x.kept = receipts{}
	x.count()
}
