package meta

import (
	"context"
	"sync"
	"sync/atomic"
)

// Client talks to one server. A Client is safe for concurrent use.
type Client struct {
	config Config
	links  []*link
	calls  sync.Pool
	turn   atomic.Uint32

	ctx    context.Context //nolint:containedctx // because it ends the connections' goroutines, which outlive every call
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// New checks the configuration. The Client connects at the first request.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{config: config, links: make([]*link, config.Connections)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.calls.New = func() any { return newCall() }
	for i := range c.links {
		c.links[i] = newLink(c)
	}
	return c, nil
}

// Do sends requests in one write on one connection, and waits for all answers: responses[i] answers
// requests[i]. The server handles them in order, possibly with requests of others in between.
//
// The error is a *Fault, or one of ErrKey, ErrValue, ErrTTL, ErrKind and ErrRequests; after these, no
// request was sent. After any error, the responses are unchanged. When ctx ends, Do returns at once
// with a Fault of ctx.Err(), and later answers are dropped.
func (c *Client) Do(ctx context.Context, requests []Request, responses []Response) error {
	if len(requests) > MaxRequests || len(responses) < len(requests) {
		return ErrRequests
	}
	size := 0
	for i := range requests {
		if err := requests[i].check(c.config.MaxValue); err != nil {
			return err
		}
		size += len(requests[i].Value)
	}
	if size > MaxBytes {
		return ErrRequests
	}
	if len(requests) == 0 {
		return nil
	}
	t, err := c.send(ctx, requests)
	if err != nil {
		return err
	}
	t.give(responses)
	c.release(t)
	return nil
}

// Ping sends a request without effect. The error is a *Fault.
func (c *Client) Ping(ctx context.Context) error {
	t, err := c.send(ctx, []Request{{Kind: noop}})
	if err == nil {
		c.release(t)
	}
	return err
}

// Stats gives the server's statistics by name. "time" is its clock in whole seconds since 1970. The
// error is a *Fault.
func (c *Client) Stats(ctx context.Context) (map[string]string, error) {
	t, err := c.send(ctx, []Request{{Kind: stats}})
	if err != nil {
		return nil, err
	}
	found := t.stats
	c.release(t)
	return found, nil
}

// Close ends the connections, and waits for all goroutines. Waiting requests fail with ErrClosed.
// Close may be called twice. Its error is always nil.
func (c *Client) Close() error {
	if c.cancel == nil {
		return ErrClosed
	}
	c.cancel()
	for _, l := range c.links {
		l.close()
	}
	c.group.Wait()
	return nil
}

// send queues requests on a connection, and waits for their answers or for a failure.
func (c *Client) send(ctx context.Context, requests []Request) (*call, error) {
	if c.cancel == nil {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, c.fault(false, err)
	}
	t := c.take(len(requests))
	l := c.pick()
	start, err := l.enqueue(t, requests)
	if err != nil {
		c.release(t)
		return nil, c.fault(false, err)
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		if t.leave() {
			return nil, c.fault(l.mayHaveSent(start), ctx.Err())
		}
		<-t.done
	}
	if err := t.err; err != nil {
		sent := t.sent
		c.release(t)
		return nil, c.fault(sent, err)
	}
	return t, nil
}

func (c *Client) fault(sent bool, err error) error {
	return &Fault{Addr: c.config.Addr, Sent: sent, Err: err}
}

// pick gives the working connection with the fewest waiting requests, in turns among equals.
func (c *Client) pick() *link {
	first := int(c.turn.Add(1))
	var best *link
	var bestLoad int64
	for i := range c.links {
		l := c.links[(first+i)%len(c.links)]
		if load := l.load.Load(); best == nil || load < bestLoad {
			best, bestLoad = l, load
		}
	}
	return best
}
