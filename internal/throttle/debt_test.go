package throttle

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// crowd is a service of four places under twice the load that it can do. Each request takes 10 ms.
type crowd struct {
	under   *Throttler
	now     headgate.Instant
	running []*Request
	served  map[string]int
}

// arrives makes a critical request of a tenant arrive.
func (c *crowd) arrives(tenant string) *Request {
	r := &Request{Class: Critical, Tenant: tenant, Route: "fast", Deadline: c.now.Add(time.Second)}
	if c.under.Arrive(c.now, r) == headgate.Allow {
		c.running = append(c.running, r)
	}
	c.dispatch()
	return r
}

func (c *crowd) dispatch() {
	for r, v := c.under.Next(c.now); r != nil; r, v = c.under.Next(c.now) {
		if v == headgate.Allow {
			c.running = append(c.running, r)
		}
	}
}

// passes lets a millisecond pass.
func (c *crowd) passes() {
	c.now = c.now.Add(time.Millisecond)
	for len(c.running) > 0 && c.running[0].Taken(c.now) >= 10*time.Millisecond {
		r := c.running[0]
		c.running = c.running[1:]
		c.under.Leave(c.now, r, Ended{})
		c.served[r.Tenant]++
	}
	c.dispatch()
}

// A tenant whose stream has ended is behind the others for a few seconds, and not until these have done
// as much work as the stream took time.
func TestStreamDoesNotStarveItsTenant(t *testing.T) {
	under, err := New(Config{Concurrency: 4})
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{under: under, served: map[string]int{}}
	stream := c.arrives("a")
	c.running = nil
	c.now = c.now.Add(time.Hour)
	under.Leave(c.now, stream, Ended{Lesson: LearnNothing})
	c.now = c.now.Add(time.Hour)
	for step := range 20_000 {
		c.passes()
		if step%3 == 0 {
			for _, tenant := range []string{"a", "b", "c"} {
				c.arrives(tenant)
			}
		}
	}
	if a, b := c.served["a"], c.served["b"]; a < b/2 {
		t.Errorf("tenant a was served %d times, b %d times: want at least half as often", a, b)
	}
}
