package demo

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// client sends requests.
type client struct {
	name string
	// demand returns the number of requests in a cycle. The first cycle is 0.
	demand func(cycle int) int

	mu    sync.Mutex
	count count
}

// count has the results of a client's requests.
type count struct{ sent, admitted, refused, failed int }

// schedule has the start and the length of the cycles.
type schedule struct {
	began time.Time
	cycle time.Duration
}

// start returns the start of a cycle. The first cycle is 0.
func (s schedule) start(cycle int) time.Time { return s.began.Add(time.Duration(cycle) * s.cycle) }

// departure returns when the nth of the cycle's requests is sent, counted from 1. The
// requests are spread evenly, and none is at an edge of the cycle.
func (s schedule) departure(cycle, n, total int) time.Time {
	return s.start(cycle).Add(s.cycle * time.Duration(n) / time.Duration(total+1))
}

// maxInFlight bounds the requests of one client in flight.
const maxInFlight = 100

// run sends the client's requests until ctx ends, and waits for the answers.
func (c *client) run(ctx context.Context, to string, with *http.Client, when schedule) {
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, maxInFlight)
	for cycle := 0; ; cycle++ {
		total := c.demand(cycle)
		for n := 1; n <= total; n++ {
			if !waitUntil(ctx, when.departure(cycle, n, total)) {
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

// waitUntil waits until at. It returns false when ctx ends first.
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

// send sends one request and counts its result. Requests that ctx interrupts do not count.
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

func (c *client) counted() count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}
