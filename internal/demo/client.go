package demo

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Client is one who asks.
type Client struct {
	// Name is shown; ID is sent in X-Client-Id, unless it is empty.
	Name, ID string
	// Path is asked for.
	Path string
	// Demand says in words what Due says in numbers.
	Demand string
	// Due is how many requests the client has wanted to send, all together, after a time.
	Due func(elapsed time.Duration) int

	mu    sync.Mutex
	count Count
}

// Count is what became of a client's requests.
type Count struct {
	Sent, Admitted, Refused, Failed int
	// Why counts refusals by the policy that refused.
	Why map[string]int
}

// steady is n requests a second.
func steady(n int) func(time.Duration) int {
	return func(elapsed time.Duration) int { return int(elapsed * time.Duration(n) / time.Second) }
}

// bursts is n requests at once, every so often.
func bursts(n int, every time.Duration) func(time.Duration) int {
	return func(elapsed time.Duration) int { return n * (1 + int(elapsed/every)) }
}

// Clients are those of the demo: each stands for a kind that every service knows.
func Clients() []*Client {
	return []*Client{
		{Name: "web-shop", ID: "web-shop", Path: "/v1/product", Demand: "20/s, steadily", Due: steady(20)},
		{Name: "mobile-app", ID: "mobile-app", Path: "/v1/product", Demand: "80 at once, every 5s", Due: bursts(80, 5*time.Second)},
		{Name: "nightly-batch", ID: "nightly-batch", Path: "/v1/orders", Demand: "200/s, for ever", Due: steady(200)},
		{Name: "crawler-1", Path: "/v1/product", Demand: "40/s, without a name", Due: steady(40)},
		{Name: "crawler-2", Path: "/v1/product", Demand: "40/s, without a name", Due: steady(40)},
	}
}

const (
	// tick is how often a client looks whether it wants to send.
	tick = 10 * time.Millisecond
	// atOnce bounds the requests that one client has under way.
	atOnce = 100
	// readBack bounds what a client reads of an answer.
	readBack = 64 << 10
)

// run sends what is due until ctx ends, and waits for the answers.
func (c *Client) run(ctx context.Context, to string, with *http.Client) {
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, atOnce)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	began, sent := time.Now(), 0
	for {
		for due := c.Due(time.Since(began)); sent < due; sent++ {
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
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// send asks once, and counts what comes back. What the end of the demo cuts off
// does not count.
func (c *Client) send(ctx context.Context, to string, with *http.Client) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to+c.Path, http.NoBody)
	if err != nil {
		return
	}
	if c.ID != "" {
		req.Header.Set("X-Client-Id", c.ID)
	}
	resp, err := with.Do(req)
	if ctx.Err() != nil {
		if err == nil {
			_ = resp.Body.Close()
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Sent++
	if err != nil {
		c.count.Failed++
		return
	}
	defer func() { _ = resp.Body.Close() }()
	c.judge(resp)
}

// judge counts an answer; a refusal says which policy refused.
func (c *Client) judge(resp *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, readBack))
	switch {
	case resp.StatusCode < http.StatusBadRequest:
		c.count.Admitted++
	case resp.StatusCode == http.StatusTooManyRequests:
		var p struct {
			Violated []string `json:"violated-policies"` //nolint:tagliatelle // the RateLimit draft names it so
		}
		_ = json.Unmarshal(body, &p)
		c.count.Refused++
		if c.count.Why == nil {
			c.count.Why = map[string]int{}
		}
		c.count.Why[strings.Join(p.Violated, " and ")]++
	default:
		c.count.Failed++
	}
}

// Count gives what became of the requests so far.
func (c *Client) Count() Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	copied := c.count
	copied.Why = maps.Clone(c.count.Why)
	return copied
}
