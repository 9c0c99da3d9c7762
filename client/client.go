package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// Client asks servers for decisions. It is safe for concurrent use.
type Client struct {
	config Config
	conns  []*grpc.ClientConn
	life   context.Context //nolint:containedctx // It ends the streams.
	end    context.CancelFunc
	ended  sync.WaitGroup
	stats  struct{ decided, fallbacks, messages, returned, retried, switches atomic.Uint64 }

	guard    *guard.Guard // decides through this client
	reads    atomic.Pointer[reading]
	lacks    lacks
	names    names
	calls    sync.Pool     // of *call
	notified chan struct{} // closed with the first reads
	known    sync.Once     // closes told

	mu      sync.Mutex // Guards the fields below.
	queue   []*call    // calls that wait to be sent
	stream  *stream    // takes new calls; nil while there is none
	down    bool       // The last attempt to open a stream failed.
	retries float64    // calls that may be sent on another stream than the one that they waited for
	closed  bool
}

// Stats are the counters of a Client.
type Stats struct {
	// Decided calls got an answer of a server, and Fallbacks did not. Messages were sent.
	Decided, Fallbacks, Messages uint64
	// Returned requests were given back, because their callers had left. Retried calls waited for one
	// stream and were sent on another. Switches counts streams that were replaced.
	Returned, Retried, Switches uint64
}

// call is one Decide. One of the caller and the stream ends it.
type call struct {
	data   []byte      // the message of the request, and after an answer that of the answer
	answer chan bool   // whether there is an answer; has room for it
	late   *time.Timer // the Timeout of the caller
	left   atomic.Bool // set by the caller that leaves, or by the stream that answers
	stream *stream     // that answered; at is the place of the request
	at     place
}

// call makes a call.
func (k *Client) call() *call {
	c, ok := k.calls.Get().(*call)
	if !ok {
		c = &call{answer: make(chan bool, 1)}
	}
	return c
}

// release keeps a call for another request. Nothing else may use it: a call that its caller has left does not come
// here.
func (k *Client) release(c *call) {
	const most = 4 << 10
	if cap(c.data) > most {
		c.data = nil
	}
	c.stream = nil
	c.left.Store(false)
	k.calls.Put(c)
}

// place is the place of a request on its stream.
type place struct {
	message uint64
	index   uint32
}

// New makes a Client, which connects in the background.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	k := &Client{config: c, retries: leastRetries, notified: make(chan struct{})}
	var err error
	if k.guard, err = guard.New(guard.Config{Decider: decider{k}}); err != nil {
		return nil, err
	}
	secured := insecure.NewCredentials()
	if c.TLS != nil {
		secured = credentials.NewTLS(c.TLS)
	}
	k.life, k.end = context.WithCancel(context.Background())
	for _, i := range rand.Perm(len(c.Servers)) { // So that many clients spread over the servers.
		conn, err := grpc.NewClient("passthrough:///"+c.Servers[i], grpc.WithTransportCredentials(secured),
			grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: leastBackoff, Multiplier: 2, Jitter: 0.5, MaxDelay: mostBackoff},
				MinConnectTimeout: time.Second,
			}))
		if err != nil {
			_ = k.Close()
			return nil, err
		}
		k.conns = append(k.conns, conn)
	}
	k.ended.Go(k.run)
	return k, nil
}

// window is how much a server may send before the client reads it.
const window = 1 << 20

// Close ends the streams. Calls that are on their way get the fallback.
func (k *Client) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.end()
	k.ended.Wait()
	var first error
	for _, conn := range k.conns {
		if err := conn.Close(); err != nil && first == nil {
			first = err
		}
	}
	k.failQueue()
	return first
}

// Stats reads the counters.
func (k *Client) Stats() Stats {
	s := &k.stats
	return Stats{
		Decided: s.decided.Load(), Fallbacks: s.fallbacks.Load(), Messages: s.messages.Load(),
		Returned: s.returned.Load(), Retried: s.retried.Load(), Switches: s.switches.Load(),
	}
}

// Decide asks a server about a request. A request that must wait waits here until its departure. The
// error is that of ctx when the caller leaves, a *RequestError for an invalid request, or wraps
// ErrUnavailable. The verdict is Deny beside an error.
func (k *Client) Decide(ctx context.Context, r *Request) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return denied(), err
	}
	c := k.call()
	c.data = r.appendTo(c.data[:0])
	a, answered, err := k.decide(ctx, c)
	switch {
	case errors.Is(err, errBusy), err == nil && !answered:
		return k.fallBack(ctx, r)
	case err != nil:
		return denied(), err
	}
	return a, nil
}

// decide sends a call, waits for its answer, and then until the departure of the request if the answer says so. It
// ends the call. Without an answer, answered is false. The error is that of ctx, or of the answer.
func (k *Client) decide(ctx context.Context, c *call) (a Answer, answered bool, err error) {
	if answered, left := k.ask(ctx, c); !answered {
		if !left {
			k.release(c)
		}
		return a, false, ctx.Err()
	}
	defer k.release(c)
	var r reply
	if r.decode(c.data, &k.names) != nil {
		return a, false, nil
	}
	if err = r.err(); !errors.Is(err, errBusy) {
		k.stats.decided.Add(1)
	}
	switch {
	case err != nil:
		return a, true, err
	case r.verdict == headgatev1.Verdict_VERDICT_WAIT:
		err = k.wait(ctx, c, r.delay)
	case r.verdict != headgatev1.Verdict_VERDICT_ALLOW: // Also a verdict that this client does not know.
		r.Verdict = headgate.Deny
	}
	return r.Answer, true, err
}

// ask sends a call and waits for its answer. answered is false if no server answers in time. left says that the
// stream may still use the call.
func (k *Client) ask(ctx context.Context, c *call) (answered, left bool) {
	if !k.enqueue(c) {
		return false, false
	}
	if c.late == nil {
		c.late = time.NewTimer(k.config.Timeout)
	} else {
		c.late.Reset(k.config.Timeout)
	}
	defer c.late.Stop()
	select {
	case answered = <-c.answer:
		return answered, false
	case <-ctx.Done():
	case <-c.late.C:
	}
	if c.left.Swap(true) { // The answer came first.
		return <-c.answer, false
	}
	return false, true
}

// wait waits until the departure of a request, or gives it back.
func (k *Client) wait(ctx context.Context, c *call, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	departure := time.NewTimer(delay)
	defer departure.Stop()
	select {
	case <-departure.C:
		return nil
	case <-ctx.Done():
		c.stream.giveBack(c.at)
		return ctx.Err()
	}
}

// enqueue adds a call to the queue. It reports false if the fallback decides: no server answers, or the
// queue is full.
func (k *Client) enqueue(c *call) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.down || len(k.queue) >= k.config.MaxQueue {
		return false
	}
	k.queue = append(k.queue, c)
	if k.stream != nil {
		k.stream.wake()
	}
	return true
}

// collect takes calls for one message. It drops those whose callers have left.
func (k *Client) collect(s *stream) (calls []*call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream != s {
		return nil
	}
	n := 0
	for n < len(k.queue) && len(calls) < maxRequests {
		if c := k.queue[n]; !c.left.Load() {
			calls = append(calls, c)
		}
		n++
	}
	rest := copy(k.queue, k.queue[n:])
	clear(k.queue[rest:])
	k.queue = k.queue[:rest]
	return calls
}
