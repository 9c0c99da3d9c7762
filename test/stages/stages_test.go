// Package stages takes a stage of admission through every front: the proxy, the middleware of
// net/http and the interceptors of gRPC.
package stages

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	inTest  = 2000 // requests by each front and protocol; `make soak` makes 10,000
	callers = 50
	most    = 3 // requests in flight
	queue   = 24
	settled = 10 * time.Second // within which what is left of the last requests ends
)

// streamed is a stage that is told of streams.
type streamed struct {
	*atmost.Stage

	streams atomic.Int64
}

// Stream implements guard.StreamStage.
func (s *streamed) Stream(*guard.Pass) { s.streams.Add(1) }

// crowd is a guard with the stage, which is loaded again all the time, and a rule that lets
// requests wait and refuses some.
type crowd struct {
	guard *guard.Guard
	slots *streamed
	stop  chan struct{}
	ended sync.WaitGroup
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
	config := guard.Config{
		Rules: []guard.Rule{{Rule: rule.Rule{Name: "queue", Key: []rule.Part{everybody}}, Policies: []headgate.Policy{{
			Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 8000, Per: time.Second, Burst: 20},
		}}}},
		Store: store, Stages: []guard.Stage{c.slots},
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
			if err := c.guard.Reload(config); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// run has callers make all requests, each in one of the ways by chance, and half of them with
// a time after which the caller leaves. Then no slot is used, and nobody waits.
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
	used, peak, waiting := c.slots.Slots()
	for until := time.Now().Add(settled); used+waiting+int(c.guard.Waiting("queue")) > 0 && time.Now().Before(until); used, peak, waiting = c.slots.Slots() {
		<-time.After(time.Millisecond)
	}
	close(c.stop)
	c.ended.Wait()
	if used != 0 || waiting != 0 || peak != most {
		t.Errorf("%d slots are used and %d requests wait, want none; %d were in flight, want %d", used, waiting, peak, most)
	}
	if n := c.guard.Waiting("queue"); n != 0 {
		t.Errorf("%d requests wait for their departure", n)
	}
}
