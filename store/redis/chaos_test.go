package redis_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/redis/script"
)

// forever is a limit that does not end while a test runs: what it admits in all is what counts.
func forever(a headgate.Algorithm, count int64) headgate.Policy {
	return headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: count, Per: 300 * 24 * time.Hour}}
}

// tally is what was decided under one key.
type tally struct{ admitted, refused, failed int }

// crowd takes units of several keys, one after another, at a steady pace.
type crowd struct {
	mu      sync.Mutex
	tallies map[string]*tally
	last    time.Time // of the last failure
	fault   error
}

// press asks for each key by turns, each time a pause after the one before and whatever becomes
// of it, until stop is closed, and returns when all are answered.
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

// within checks that each key was admitted its limit, less at most what has failed, each of which
// may have been counted. It gives how many have failed.
func (c *crowd) within(t *testing.T, limit int) (failed, asked int) {
	t.Helper()
	for key, n := range c.tallies {
		all := n.admitted + n.refused + n.failed
		failed, asked = failed+n.failed, asked+all
		if n.admitted > limit || n.admitted < min(limit, all)-n.failed {
			t.Errorf("%s: %d admitted, %d refused, %d failed: the limit is %d", key, n.admitted, n.refused, n.failed, limit)
		}
	}
	return failed, asked
}

// slotsOf gives the slots that keys are counted in.
func slotsOf(t *testing.T, keys []string) []int {
	t.Helper()
	names, err := script.NewNames(0)
	if err != nil {
		t.Fatal(err)
	}
	slots := make([]int, 0, len(keys))
	for _, key := range keys {
		slots = append(slots, int(names.Slot(script.PlaceOf(key, 0))))
	}
	return slots
}

// another gives a node of the cluster that is not the one given, the same one each time.
func another(c *testserver.Cluster, than *testserver.Server) *testserver.Server {
	if c.Nodes[0] != than {
		return c.Nodes[0]
	}
	return c.Nodes[1]
}

// tour takes slots away from their masters and back to them.
type tour struct {
	cluster *testserver.Cluster
	host    *testserver.Server // where slots go to
	slots   []int
	homes   []*testserver.Server
}

// newTour is of those slots that are not the host's.
func newTour(cluster *testserver.Cluster, slots []int) *tour {
	r := &tour{cluster: cluster, host: cluster.Nodes[0]}
	for _, slot := range slots {
		if home := cluster.MasterOf(slot); home != r.host {
			r.slots, r.homes = append(r.slots, slot), append(r.homes, home)
		}
	}
	return r
}

// away moves the slots to the host, and back moves them home.
func (r *tour) away(t *testing.T) {
	t.Helper()
	for i, slot := range r.slots {
		r.cluster.MoveSlot(slot, r.homes[i], r.host)
	}
	r.heard(t)
}

func (r *tour) back(t *testing.T) {
	t.Helper()
	for i, slot := range r.slots {
		r.cluster.MoveSlot(slot, r.host, r.homes[i])
	}
	r.heard(t)
}

// heard waits until all nodes know each other's epochs. A slot that comes back to a node which
// has not heard of its old master's last move may end up at neither.
func (r *tour) heard(t *testing.T) {
	t.Helper()
	until(t, "news of the moves", func() bool {
		var first map[string]string
		for _, node := range r.cluster.Nodes {
			epochs := map[string]string{}
			for line := range strings.Lines(node.CLI("CLUSTER", "NODES")) {
				f := strings.Fields(line)
				epochs[f[0]] = f[6]
			}
			if first == nil {
				first = epochs
			}
			if !maps.Equal(first, epochs) {
				return false
			}
		}
		return true
	})
}

// refused waits until each key was refused a few times, which is when its limit is used up.
func (c *crowd) refused(t *testing.T, keys []string) {
	t.Helper()
	until(t, "more than the limits", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, key := range keys {
			if n := c.tallies[key]; n == nil || n.refused < 3 {
				return false
			}
		}
		return true
	})
}

// TestSlotsMoveUnderLoad: slots whose keys are being counted move to another master and back.
// No decision is wrong, and few fail; when all stay where they are none does.
func TestSlotsMoveUnderLoad(t *testing.T) {
	moveUnderLoad(t, 60, 1, 4*time.Millisecond, time.Second, 20)
}

// moveUnderLoad moves the slots of a dozen keys so many times there and back, and allows one
// failure in so many decisions.
func moveUnderLoad(t *testing.T, limit int64, tours int, pause, budget time.Duration, oneIn int) {
	t.Helper()
	cluster := testserver.StartCluster(t, 3, 0)
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	id := prepare(t, store, forever(headgate.SlidingLog, limit))
	var keys []string
	for k := range 12 {
		keys = append(keys, fmt.Sprint("key ", k))
	}
	var c crowd
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); c.press(store, id, keys, pause, budget, stop) }()
	r := newTour(cluster, slotsOf(t, keys))
	for range tours {
		r.away(t)
		r.back(t)
	}
	moved := time.Now()
	c.refused(t, keys)
	until(t, "a while without moves", func() bool { return time.Since(moved) > 1500*time.Millisecond })
	close(stop)
	<-done
	failed, asked := c.within(t, int(limit))
	if late := c.last.Sub(moved); late > time.Second {
		t.Errorf("a decision failed %v after the last move: %v", late, c.fault)
	}
	if failed > asked/oneIn {
		t.Errorf("%d of %d decisions failed, the last with %v", failed, asked, c.fault)
	}
	t.Logf("%d moves: %d of %d decisions failed, each within %v, the last with %v", 2*tours*len(r.slots), failed, asked, budget, c.fault)
}

// TestHalfMovedSlotUnderLoad: while a slot is neither here nor there, a key that has gone, one
// that has not and one that is new are each counted once.
func TestHalfMovedSlotUnderLoad(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	// With few slots many keys share one.
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Slots: 1})
	const limit = 10
	id := prepare(t, store, forever(headgate.FixedWindow, limit))
	names, err := script.NewNames(1)
	if err != nil {
		t.Fatal(err)
	}
	slot := int(names.Slot(script.PlaceOf("key", 0)))
	var c crowd
	for k := range 6 {
		for range 3 {
			c.one(store, id, fmt.Sprint("old ", k), patience)
		}
	}
	from := cluster.MasterOf(slot)
	move := cluster.BeginMove(slot, from, another(cluster, from))
	if n := move.Keys(3); n != 3 {
		t.Fatalf("%d keys have moved, want 3", n)
	}
	var together sync.WaitGroup
	for range limit {
		for k := range 6 {
			together.Go(func() { c.one(store, id, fmt.Sprint("old ", k), time.Second) })
			together.Go(func() { c.one(store, id, fmt.Sprint("new ", k), time.Second) })
		}
	}
	together.Wait()
	move.Keys(-1)
	move.Finish()
	until(t, "a decision", func() bool { _, err := take(store, id, "other", time.Second); return err == nil })
	for range limit {
		for k := range 6 {
			c.one(store, id, fmt.Sprint("old ", k), patience)
			c.one(store, id, fmt.Sprint("new ", k), patience)
		}
	}
	failed, asked := c.within(t, limit)
	t.Logf("%d of %d decisions failed, the last with %v", failed, asked, c.fault)
}

// TestScriptsForgottenInALoop: a server that forgets its scripts over and over fails no
// decision and counts none twice.
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
		t.Errorf("%d decisions failed, the last with %v", failed, c.fault)
	}
	if n < 20 {
		t.Errorf("the scripts were forgotten %d times", n)
	}
	t.Logf("scripts forgotten %d times", n)
}

// TestUnansweredCountsAsSpent: what a server was asked and could not answer in time is counted,
// if it has reached the server. What it never heard of is counted when it does, or not at all.
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
					t.Errorf("request %d was answered", n)
				}
				if took := time.Since(began); took > 500*time.Millisecond {
					t.Errorf("request %d took %v, its budget is 20ms", n, took)
				}
			}
			way.Heal()
			used := int64(0)
			until(t, fmt.Sprint(c.least, " counted"), func() bool {
				d, err := look(store, id, "key")
				used = limit - d.Remaining
				return err == nil && used >= c.least
			})
			if used > before+during {
				t.Errorf("%d are counted of %d that were asked", used, before+during)
			}
			t.Logf("%d of %d are counted", used, before+during)
		})
	}
}

// look tells how a key stands, and counts nothing.
func look(s headgate.Store, id headgate.PolicyID, key string) (headgate.Decision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var decisions [1]headgate.Decision
	err := s.Apply(ctx, []headgate.Op{{Key: key, Policy: id, Mode: headgate.Peek}}, decisions[:])
	return decisions[0], err
}
