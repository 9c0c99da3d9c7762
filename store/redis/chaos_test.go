package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// forever gives a policy with a period of 300 days, so that no units expire or refill during a test.
func forever(a headgate.Algorithm, count int64) headgate.Policy {
	return headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: count, Per: 300 * 24 * time.Hour}}
}

// tally counts the decisions of one key.
type tally struct{ admitted, refused, failed int }

// crowd takes units of several keys in turns, at a steady pace.
type crowd struct {
	mu      sync.Mutex
	tallies map[string]*tally
	last    time.Time // time of the last failure
	fault   error
}

// press takes units of the keys in turns, one after each pause, without waiting for answers. It
// stops when stop is closed, and returns after the last answer.
func (c *crowd) press(store headgate.Store, id headgate.PolicyID, keys []string, pause, budget time.Duration, stop <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-ticks.C:
		}
		all.Go(func() { c.one(store, id, keys[n%len(keys)], budget) })
	}
}

func (c *crowd) one(store headgate.Store, id headgate.PolicyID, key string, budget time.Duration) {
	d, err := take(store, id, key, budget)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tallies == nil {
		c.tallies = map[string]*tally{}
	}
	t := c.tallies[key]
	if t == nil {
		t = &tally{}
		c.tallies[key] = t
	}
	switch {
	case err != nil:
		t.failed++
		c.last, c.fault = time.Now(), err
	case d.Verdict == headgate.Allow:
		t.admitted++
	default:
		t.refused++
	}
}

// within checks that each key got its limit, minus at most its failed calls, because a failed call may
// have been counted. It gives the numbers of failed calls and of all calls.
func (c *crowd) within(t *testing.T, limit int) (failed, total int) {
	t.Helper()
	for key, n := range c.tallies {
		all := n.admitted + n.refused + n.failed
		failed, total = failed+n.failed, total+all
		if n.admitted > limit || n.admitted < min(limit, all)-n.failed {
			t.Errorf("key %s: %d units admitted, %d refused, %d failed: want the limit of %d, minus at most the failures", key, n.admitted, n.refused, n.failed, limit)
		}
	}
	return failed, total
}

// TestScriptsForgottenInALoop: a server loses its scripts again and again. No decision fails,
// and none is counted twice.
func TestScriptsForgottenInALoop(t *testing.T) {
	server := testserver.Start(t)
	store := newStore(t, server.Addr, nil)
	const limit = 200
	id := prepare(t, store, forever(headgate.TokenBucket, limit))
	var c crowd
	ctx, cancel := context.WithCancel(t.Context())
	flushing := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if _, err := server.Do("SCRIPT", "FLUSH"); err != nil {
				t.Error(err)
			}
		}
		flushing <- n
	}()
	var together sync.WaitGroup
	for worker := range 8 {
		together.Go(func() {
			for range 2 * limit {
				c.one(store, id, fmt.Sprint(worker%4), patience)
			}
		})
	}
	together.Wait()
	cancel()
	n := <-flushing
	if failed, _ := c.within(t, limit); failed > 0 {
		t.Errorf("%d decisions failed, want none; the last with: %v", failed, c.fault)
	}
	if n < 20 {
		t.Errorf("SCRIPT FLUSH ran %d times, want at least 20", n)
	}
	t.Logf("SCRIPT FLUSH ran %d times", n)
}

// TestUnansweredCountsAsSpent: a call that reached the server is counted although its answer
// came too late. A call that was delayed is counted when it arrives, or never.
func TestUnansweredCountsAsSpent(t *testing.T) {
	const before, during, limit = 5, 4, 100
	for _, c := range []struct {
		name  string
		fault func(*network.Link)
		least int64
	}{
		{"no answers", (*network.Link).NoAnswers, before + 1},
		{"half open", (*network.Link).HalfOpen, before},
	} {
		t.Run(c.name, func(t *testing.T) {
			way := network.New(t, testserver.Start(t).Addr)
			store := open(t, redis.Config{
				Client:  rueidis.ClientOption{InitAddress: []string{way.Addr}},
				Breaker: breaker.Config{Failures: 100},
			})
			id := prepare(t, store, forever(headgate.SlidingLog, limit))
			for range before {
				if _, err := take(store, id, "key", patience); err != nil {
					t.Fatal(err)
				}
			}
			c.fault(way)
			for n := range during {
				began := time.Now()
				if _, err := take(store, id, "key", 20*time.Millisecond); err == nil {
					t.Errorf("request %d was decided during the fault, want an error", n)
				}
				if elapsed := time.Since(began); elapsed > lateOnBusyMachine {
					t.Errorf("request %d took %v with a timeout of 20ms", n, elapsed)
				}
			}
			way.Heal()
			used := int64(0)
			until(t, fmt.Sprint(c.least, " counted units"), func() bool {
				d, err := look(store, id, "key")
				used = limit - d.Remaining
				return err == nil && used >= c.least
			})
			if used > before+during {
				t.Errorf("%d units are counted, want at most %d", used, before+during)
			}
			t.Logf("%d of %d units are counted", used, before+during)
		})
	}
}

// look peeks at the state of a key, and takes nothing.
func look(s headgate.Store, id headgate.PolicyID, key string) (headgate.Decision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var decisions [1]headgate.Decision
	err := s.Apply(ctx, []headgate.Op{{Key: key, Policy: id, Kind: headgate.Peek}}, decisions[:])
	return decisions[0], err
}
