package demo

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// client is one who asks.
type client struct {
	name string
	// demand is how many requests it sends in a cycle, counted from 0.
	demand func(cycle int) int

	mu    sync.Mutex
	count count
}

// count is what became of a client's requests.
type count struct{ sent, admitted, refused, failed int }

// schedule says when cycles are.
type schedule struct {
	began time.Time
	cycle time.Duration
}

// start gives when a cycle begins, counted from 0.
func (s schedule) start(cycle int) time.Time { return s.began.Add(time.Duration(cycle) * s.cycle) }

// departure gives when the nth of so many requests of a cycle leaves, counted from 1.
// They are spread evenly, and none lies at the cycle's edge.
func (s schedule) departure(cycle, n, of int) time.Time {
	return s.start(cycle).Add(s.cycle * time.Duration(n) / time.Duration(of+1))
}

// atOnce bounds the requests that one client has under way.
const atOnce = 100

// run sends what the client wants until ctx ends, and waits for the answers.
func (c *client) run(ctx context.Context, to string, with *http.Client, when schedule) {
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, atOnce)
	for cycle := 0; ; cycle++ {
		of := c.demand(cycle)
		for n := 1; n <= of; n++ {
			if !waitUntil(ctx, when.departure(cycle, n, of)) {
				return
			}
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			open.Go(func() {
				defer func() { <-places }()
				c.send(ctx, to, with)
			})
		}
		if !waitUntil(ctx, when.start(cycle+1)) {
			return
		}
	}
}

// waitUntil waits for a time; it reports false when ctx ended before.
func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send asks once, and counts what comes back. What the end of the demo cuts off
// does not count.
func (c *client) send(ctx context.Context, to string, with *http.Client) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, http.NoBody)
	if err != nil {
		return
	}
	req.Header.Set("X-Client-Id", c.name)
	resp, err := with.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.sent++
	switch {
	case err != nil:
		c.count.failed++
	case resp.StatusCode < http.StatusBadRequest:
		c.count.admitted++
	case resp.StatusCode == http.StatusTooManyRequests:
		c.count.refused++
	default:
		c.count.failed++
	}
}

// counted gives what became of the requests so far.
func (c *client) counted() count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}
