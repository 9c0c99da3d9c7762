// Package stages tests a stage of admission in every front: the proxy, the middleware for
// net/http and the interceptors for gRPC.
package stages

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	inTest  = 2000 // requests by each front and protocol; `make soak` sends 10,000
	callers = 50
	most    = 3 // requests in flight
	queue   = 24
	settled = 10 * time.Second // time for the last requests to end
)

// streamed is a stage that counts streams.
type streamed struct {
	*atmost.Stage

	streams atomic.Int64
}

// Stream implements guard.StreamStage.
func (s *streamed) Stream(*guard.Pass) { s.streams.Add(1) }

// crowd is a guard with the stage, a throttler after it, and a rule that delays some requests and
// refuses others. The guard is reloaded all the time.
type crowd struct {
	guard     *guard.Guard
	slots     *streamed
	throttler *throttler.Stage
	stop      chan struct{}
	ended     sync.WaitGroup
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	everybody, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{slots: &streamed{Stage: atmost.New(most, queue)}, stop: make(chan struct{})}
	throttled := throttler.Config{Limits: throttler.Limits{Concurrency: most - 1}}
	if c.throttler, err = throttler.New(throttled); err != nil {
		t.Fatal(err)
	}
	config := guard.Config{
		Rules: []guard.Rule{{Rule: rule.Rule{Name: "queue", Key: []rule.Part{everybody}}, Policies: []headgate.Policy{{
			Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 8000, Per: time.Second, Burst: 20},
		}}}},
		Store: store, Stages: []guard.Stage{c.slots, c.throttler},
	}
	if c.guard, err = guard.New(config); err != nil {
		t.Fatal(err)
	}
	c.ended.Go(func() {
		for {
			select {
			case <-c.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			next, err := c.throttler.With(throttled)
			if err != nil {
				t.Error(err)
				continue
			}
			config.Stages = []guard.Stage{c.slots, next}
			if err := c.guard.Reload(config); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// run sends all requests. Each takes a random way, and half of them have a deadline after which
// the caller leaves. Afterwards no slot is used, and no request waits.
func (c *crowd) run(t *testing.T, requests int, ways []func(ctx context.Context)) {
	t.Helper()
	var all sync.WaitGroup
	for n := range callers {
		random := rand.New(rand.NewPCG(uint64(n), 7))
		all.Go(func() {
			for range requests / callers {
				ctx, cancel := context.WithTimeout(t.Context(), settled)
				if random.IntN(2) == 0 {
					time.AfterFunc(time.Duration(random.IntN(int(8*time.Millisecond))), cancel)
				}
				ways[random.IntN(len(ways))](ctx)
				cancel()
			}
		})
	}
	all.Wait()
	// A client may have its answer before the front has ended the request, in one stage after the other.
	for until := time.Now().Add(settled); !c.idle() && time.Now().Before(until); {
		<-time.After(time.Millisecond)
	}
	close(c.stop)
	c.ended.Wait()
	if l, _ := c.throttler.Load(); l.InFlight != 0 || l.CPU != 0 || l.QueuedWork != 0 || l.Queued != [throttle.ClassCount]int{} {
		t.Errorf("the throttler keeps %+v", l)
	}
	used, peak, waiting := c.slots.Slots()
	if used != 0 || waiting != 0 || peak != most {
		t.Errorf("%d slots are used and %d requests wait, want none; %d were in flight, want %d", used, waiting, peak, most)
	}
	if n := c.guard.Waiting("queue"); n != 0 {
		t.Errorf("%d requests wait for their departure", n)
	}
}

// idle reports whether no request is in a stage or waits for its departure.
func (c *crowd) idle() bool {
	used, _, waiting := c.slots.Slots()
	load, _ := c.throttler.Load()
	return used == 0 && waiting == 0 && load.InFlight == 0 && c.guard.Waiting("queue") == 0
}
