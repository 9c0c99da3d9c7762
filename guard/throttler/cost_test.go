package throttler_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// costing takes requests of 16 tenants on four routes through a guard, one after the other.
type costing struct {
	guard    *guard.Guard
	requests []headgate.Request
	next     int
	ticket   guard.Ticket
	answer   guard.Answer
}

// throttled returns a guard with a throttle that no request waits in, or without a throttle.
func throttled(tb testing.TB, with bool) *guard.Guard {
	tb.Helper()
	var c guard.Config
	if with {
		tenant, err := rule.ParsePart("header:X-Client-Id")
		if err != nil {
			tb.Fatal(err)
		}
		stage, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 1000}, Tenant: tenant})
		if err != nil {
			tb.Fatal(err)
		}
		c.Stages = []guard.Stage{stage}
	}
	g, err := guard.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func newCosting(g *guard.Guard) *costing {
	c := &costing{guard: g, requests: make([]headgate.Request, 16)}
	for i := range c.requests {
		c.requests[i] = headgate.Request{
			Method: http.MethodGet, Path: "/users/" + strconv.Itoa(100+i) + "/orders/" + "abcd"[i%4:][:1],
			Header: values{"X-Client-Id": "client-" + strconv.Itoa(i)},
		}
	}
	return c
}

// values are the headers of a request.
type values map[string]string

func (v values) Lookup(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// pass takes one request from Admit to Done, with the header of its answer.
func (c *costing) pass(ctx context.Context) error {
	c.ticket.Answer = &c.answer
	if err := c.guard.Admit(ctx, &c.requests[c.next], &c.ticket); err != nil {
		return err
	}
	c.ticket.Forward()
	c.ticket.Answers(http.StatusOK)
	c.ticket.Done(guard.Outcome{Status: http.StatusOK})
	c.next = (c.next + 1) % len(c.requests)
	return nil
}

// TestRequestAllocatesNothing checks the whole way of a request that does not wait.
func TestRequestAllocatesNothing(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	c := newCosting(throttled(t, true))
	step := func() {
		if err := c.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("a request allocates %v times, want 0", n)
	}
}

// BenchmarkRequest measures Admit, Forward, Answers and Done without a throttle and with one in which no request waits. The difference
// is the cost of the stage.
func BenchmarkRequest(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run("throttler="+strconv.FormatBool(with), func(b *testing.B) {
			c := newCosting(throttled(b, with))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.pass(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParallel is BenchmarkRequest on all processors, which share the stage.
func BenchmarkParallel(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run("throttler="+strconv.FormatBool(with), func(b *testing.B) {
			g := throttled(b, with)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for c := newCosting(g); pb.Next(); {
					if err := c.pass(b.Context()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
