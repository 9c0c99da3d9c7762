package instances

import (
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
)

// patience is longer than any wait of these tests.
const patience = 30 * time.Second

// DecideAlike has three instances whose clocks are right, 30 s early and 30 s late, each with a store of its own on one
// server. A month ends while they decide. The server's clock ends it for all of them at once. A store that estimates the
// server's time may be behind by the given time, and waits for longer by as much.
func DecideAlike(t *testing.T, open func() headgate.Store, behind time.Duration) {
	t.Helper()
	skews := [...]time.Duration{-30 * time.Second, 0, 30 * time.Second}
	var stores [len(skews)]headgate.Store
	for i := range stores {
		stores[i] = open()
		_, _ = take(t, newInstance(t, stores[i], calendar.Default(), 0), "first") // The first decision connects.
	}
	for n, began := 0, time.Now(); ; n++ {
		edge := time.Now().Add(1300 * time.Millisecond).Truncate(time.Second)
		c := crossing{
			behind: behind, edge: headgate.Instant(edge.UnixNano()), customers: customers(strconv.Itoa(n)), used: map[string]*use{},
		}
		for i, skew := range skews {
			c.instances = append(c.instances, newInstance(t, stores[i], monthsBeginAt(edge), skew))
		}
		if c.run(t) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("no month has ended between two rounds of decisions for %v", patience)
		}
	}
}

// crossing is a month that ends while the instances decide.
type crossing struct {
	instances []*guard.Guard
	customers []string
	behind    time.Duration
	edge      headgate.Instant
	used      map[string]*use
}

// use is what a customer has used of its present month.
type use struct {
	before, after int64
	began         bool
}

// run decides until each customer has used units of both months in each instance. It reports false when the machine was too
// slow for units of the first month.
func (c *crossing) run(t *testing.T) bool {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		ended := true
		for _, customer := range c.customers {
			for i, g := range c.instances {
				c.decide(t, g, i, customer)
			}
			ended = ended && c.used[customer].after > int64(2*len(c.instances))
		}
		if ended {
			return c.seenBoth()
		}
	}
	t.Fatalf("the month that ends at %s does not end for all customers within %v", c.edge.Time(), patience)
	return false
}

// seenBoth reports whether each instance has decided before the edge.
func (c *crossing) seenBoth() bool {
	for _, u := range c.used {
		if u.before < int64(len(c.instances)) {
			return false
		}
	}
	return true
}

// decide takes a unit and checks the decision by its own time, which is the server's.
func (c *crossing) decide(t *testing.T, g *guard.Guard, i int, customer string) {
	t.Helper()
	d, err := take(t, g, customer)
	if err != nil {
		t.Fatalf("instance %d: %v", i, err)
	}
	u := c.used[customer]
	if u == nil {
		u = &use{}
		c.used[customer] = u
	}
	window, ends := &u.before, c.edge
	if d.At >= c.edge {
		next := monthsBeginAt(c.edge.Time()).Edges(headgate.Month, c.edge.Time())
		window, ends, u.began = &u.after, next[2], true
	} else if u.began {
		t.Fatalf("instance %d, customer %s: decided at %s, after a decision of the month that began at %s",
			i, customer, d.At.Time(), c.edge.Time())
	}
	*window++
	if at := d.At.Add(d.ResetAfter); d.Remaining != count-*window || at < ends || at.Sub(ends) > c.behind {
		t.Fatalf("instance %d, customer %s at %s: %d used until %s, want %d until %s", i, customer, d.At.Time(),
			count-d.Remaining, at.Time(), *window, ends.Time())
	}
}
