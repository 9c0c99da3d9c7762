package front

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// errUnread ends a stream whose client does not read.
var errUnread = status.Error(codes.ResourceExhausted, "the client does not read its answers: read them while you send reports")

// errMoved ends a stream whose client was sent to the master.
var errMoved = status.Error(codes.Unavailable, "another server is the master: use the server that the last answer names")

// maxResponse bounds a response, in bytes, but for its last lease.
const maxResponse = 64 << 10

// endGrace is the time of a client to open another stream with another token, after its token has ended.
const endGrace = time.Second

// stream is one open stream. One goroutine receives its reports and sends answers. If that one waits for a report, another one
// sends pushes, and ends when nothing waits.
type stream struct {
	service *Service
	stream  grpc.ServerStream
	account *rpc.Account
	access  *access.Call
	session *access.Session     // nil without auth
	holders map[string]struct{} // whose answers come here; guarded by Service.mu
	gone    bool                // nothing is sent any more; guarded by Service.mu
	backlog *rpc.Backlog        // used by the sender
	waiting atomic.Int64        // bytes of queue and of what is sent now
	ending  chan struct{}       // closed when the service ends the stream

	relieves bool // The service closes the stream, and no other one before its end; guarded by Service.watch.

	mu      sync.Mutex // Guards the fields below.
	queue   queue
	taken   int64  // bytes that are sent now
	sending bool   // A goroutine sends, and takes what is in the queue before it stops.
	ask     bool   // The client shall end the stream, and does not know.
	moved   string // The address of the master to which the client shall go, or "".
	err     error
}

// serve serves a stream until its client or the service ends it.
func (s *Service) serve(conn grpc.ServerStream) error {
	account := rpc.AccountOf(conn.Context())
	x := &stream{
		service: s, stream: conn, account: account, access: access.CallOf(conn.Context()), holders: map[string]struct{}{},
		backlog: rpc.NewBacklog(account), ending: make(chan struct{}),
	}
	var err error
	if x.session, err = x.access.Open(func() {
		time.AfterFunc(endGrace, func() { x.end(access.Status(access.ErrWrongCredentials)) })
		x.askToEnd()
	}); err != nil {
		return access.Status(err)
	}
	defer x.session.Close()
	if err := conn.SendHeader(nil); err != nil { // So that a client knows that the stream is accepted.
		return err
	}
	if s.add(x) {
		x.askToEnd()
	}
	x.settle()
	defer x.close()
	if s.options.MaxAge > 0 {
		defer time.AfterFunc(jitter(s.options.MaxAge), x.askToEnd).Stop()
	}
	served := make(chan error, 1)
	go func() { served <- x.receive() }()
	select {
	case err := <-served:
		return err
	case <-x.ending: // When this returns, gRPC ends the stream, and receive returns too.
		return x.err
	}
}

// jitter adds or subtracts up to a tenth at random.
func jitter(age time.Duration) time.Duration {
	const part = 10
	return age - age/part + rand.N(2*age/part+1)
}

// client is the client with its present rights.
func (x *stream) client() *access.Client {
	if x.session != nil {
		return x.session.Client()
	}
	return x.access.Client()
}

// receive takes reports until the client ends the stream.
func (x *stream) receive() error {
	for {
		r := request{ctx: x.stream.Context(), account: x.account}
		err := x.stream.RecvMsg(&r)
		if err == nil {
			err = r.fault
		}
		if err == nil {
			err = x.take(&r)
		}
		r.release()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take takes a report, and sends what is answered at once.
func (x *stream) take(r *request) error {
	client := x.client()
	if err := client.Permit(config.ScopeLease); err != nil {
		x.access.Refused(err)
		return access.Status(err)
	}
	if _, err := x.service.receive(client.Name(), &r.report, x); err != nil {
		holder := r.report.Holder
		if len(holder) > state.MaxName {
			holder = ""
		}
		x.refuse(strings.Clone(holder), r.report.Seq, err)
	}
	if x.service.options.Elected {
		if _, late, _ := x.service.away(); late {
			return errNoMaster
		}
	}
	x.mu.Lock()
	if x.sending {
		x.mu.Unlock()
		return nil
	}
	x.sending = true
	x.mu.Unlock()
	return x.send()
}

// lease implements sink.
func (x *stream) lease(holder string, l *state.Lease) {
	x.put(func() { x.queue.lease(holder, l) })
}

// refuse implements sink.
func (x *stream) refuse(holder string, seq uint64, err *state.Error) {
	x.put(func() { x.queue.refuse(holder, seq, err) })
}

// put adds to the queue within its bounds.
func (x *stream) put(add func()) {
	if x.service.waiting.Load() > maxAllWaiting {
		x.service.relieve()
		return
	}
	x.mu.Lock()
	if x.err != nil {
		x.mu.Unlock()
		return
	}
	before := x.queue.bytes
	add()
	now := x.queue.bytes + x.taken
	before += x.taken
	x.waiting.Store(now)
	x.mu.Unlock()
	x.service.waiting.Add(now - before)
	if now > maxWaiting {
		x.end(errUnread)
	}
}

// replaced implements sink.
func (x *stream) replaced(holder string) { delete(x.holders, holder) }

// flush implements sink. Service.mu is held, so that another goroutine sends.
func (x *stream) flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sending || x.err != nil || x.idle() {
		return
	}
	x.sending = true
	go func() { _ = x.send() }() // The receiver gets the error too.
}

// idle reports whether there is nothing to send. The caller holds mu.
func (x *stream) idle() bool { return len(x.queue.order) == 0 && !x.ask && x.moved == "" }

// next takes the queue, and a message that follows the answers. The sender stops if nothing waits.
func (x *stream) next() (all []*answer, last []byte, moved, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		x.sending = false
		return nil, nil, false, false
	}
	x.service.waiting.Add(-x.taken) // It was sent.
	x.taken = x.queue.bytes
	x.waiting.Store(x.taken)
	if x.idle() {
		x.sending = false
		return nil, nil, false, false
	}
	switch {
	case x.moved != "":
		last, moved = redirected("", x.moved), true
	case x.ask:
		last = draining()
	}
	x.ask = false
	return x.queue.take(), last, moved, true
}

// send sends all that waits. The caller has set sending.
func (x *stream) send() error {
	for {
		all, last, moved, more := x.next()
		if !more {
			return nil
		}
		for len(all) > 0 {
			var encoded []byte
			encoded, all = encodeResponse(all)
			if err := x.write(encoded); err != nil {
				return err
			}
		}
		if last != nil {
			if err := x.write(last); err != nil {
				return err
			}
		}
		if moved {
			x.end(errMoved)
			return errMoved
		}
	}
}

// write sends a response, which counts until the client has read it. After an error, nothing more is sent.
func (x *stream) write(encoded []byte) error {
	r := rpc.NewResponse(x.account, encoded)
	x.backlog.Add(r)
	err := x.stream.SendMsg(r)
	if err != nil {
		x.end(err)
	}
	return err
}

// encodeResponse encodes the first answers that are for one holder, and returns the others.
func encodeResponse(all []*answer) (encoded []byte, rest []*answer) {
	holder := all[0].holder
	b := wire.AppendText(nil, 1, holder)
	for i, a := range all {
		if a.holder != holder || len(b) >= maxResponse {
			return b, all[i:]
		}
		if a.given {
			b = appendLease(b, &a.lease)
		}
		if a.refused != nil {
			b = appendRefusal(b, a.seq, a.refused)
		}
	}
	return b, nil
}

// askToEnd asks the client to end the stream. It does not wait for a client that does not read.
func (x *stream) askToEnd() {
	x.mu.Lock()
	x.ask = true
	x.mu.Unlock()
	x.flush()
}

// end ends the stream with an error. Only the first call has an effect.
func (x *stream) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return
	}
	x.err = err
	if errors.Is(err, errUnread) {
		x.service.stats.closed.Add(1)
	}
	close(x.ending)
}

// close drops what the stream kept.
func (x *stream) close() {
	x.mu.Lock()
	if x.err == nil {
		x.err = io.EOF
	}
	x.service.waiting.Add(-x.queue.bytes - x.taken)
	x.waiting.Store(0)
	x.queue, x.taken = queue{}, 0
	x.mu.Unlock()
	x.service.remove(x)
}
