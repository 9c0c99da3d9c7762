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

	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/proto/headgate/v1"
)

// Client asks servers for decisions. It is safe for concurrent use.
type Client struct {
	config Config
	conns  []*grpc.ClientConn
	life   context.Context //nolint:containedctx // It ends the streams.
	end    context.CancelFunc
	ended  sync.WaitGroup
	stats  struct{ decided, fallbacks, messages, returned, retried, switches atomic.Uint64 }

	guard *guard.Guard // decides through this client
	reads atomic.Pointer[headgatev1.Reads]
	told  chan struct{} // closed with the first reads
	known sync.Once     // closes told

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
	request *headgatev1.Request
	answer  chan *headgatev1.Answer // has room for the answer
	left    atomic.Bool             // set by the caller that leaves, or by the stream that answers
	stream  *stream                 // that answered; at is the place of the request
	at      place
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
	k := &Client{config: c, retries: leastRetries, told: make(chan struct{})}
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
	c := &call{request: r.message(), answer: make(chan *headgatev1.Answer, 1)}
	m, err := k.ask(ctx, c)
	switch {
	case err != nil:
		return denied(), err
	case m == nil:
		return k.fallBack(ctx, r)
	}
	a, err := k.wait(ctx, c, m)
	switch {
	case errors.Is(err, errBusy):
		return k.fallBack(ctx, r)
	case err != nil:
		return denied(), err
	}
	return a, nil
}

// ask sends a call and waits for its answer. It is nil if no server answers in time. The error is that of ctx.
func (k *Client) ask(ctx context.Context, c *call) (*headgatev1.Answer, error) {
	if !k.enqueue(c) {
		return nil, ctx.Err()
	}
	late := time.NewTimer(k.config.Timeout)
	defer late.Stop()
	select {
	case m := <-c.answer:
		return m, nil
	case <-ctx.Done():
	case <-late.C:
	}
	if c.left.Swap(true) { // The answer came first.
		return <-c.answer, nil
	}
	return nil, ctx.Err()
}

// wait reads an answer, and waits until the departure of the request if it says so.
func (k *Client) wait(ctx context.Context, c *call, m *headgatev1.Answer) (Answer, error) {
	a, delay, err := answerOf(m)
	if !errors.Is(err, errBusy) {
		k.stats.decided.Add(1)
	}
	if err != nil || delay <= 0 {
		return a, err
	}
	departure := time.NewTimer(delay)
	defer departure.Stop()
	select {
	case <-departure.C:
		return a, nil
	case <-ctx.Done():
		c.stream.giveBack(c.at)
		return a, ctx.Err()
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
func (k *Client) collect(of *stream) (calls []*call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream != of {
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
