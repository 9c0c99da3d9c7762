package redis_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/script"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// slotsOf gives the slots of the keys' states.
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

// another gives a node of the cluster that differs from than. The node is the same in each call.
func another(c *testserver.Cluster, than *testserver.Server) *testserver.Server {
	if c.Nodes[0] != than {
		return c.Nodes[0]
	}
	return c.Nodes[1]
}

// tour moves slots from their masters to a host and back.
type tour struct {
	cluster *testserver.Cluster
	host    *testserver.Server // the new master of the slots
	slots   []int
	homes   []*testserver.Server
}

// newTour keeps the slots that the host does not already serve.
func newTour(cluster *testserver.Cluster, slots []int) *tour {
	r := &tour{cluster: cluster, host: cluster.Nodes[0]}
	for _, slot := range slots {
		if home := cluster.MasterOf(slot); home != r.host {
			r.slots, r.homes = append(r.slots, slot), append(r.homes, home)
		}
	}
	return r
}

// away moves the slots to the host, and back moves them to their masters.
func (r *tour) away(t *testing.T) {
	t.Helper()
	for i, slot := range r.slots {
		r.cluster.MoveSlot(slot, r.homes[i], r.host)
	}
	r.waitEpochs(t)
}

func (r *tour) back(t *testing.T) {
	t.Helper()
	for i, slot := range r.slots {
		r.cluster.MoveSlot(slot, r.host, r.homes[i])
	}
	r.waitEpochs(t)
}

// waitEpochs waits until all nodes know the configuration epochs of all others. If a slot returns to
// a node that does not know the latest epoch, both masters may lose the slot.
func (r *tour) waitEpochs(t *testing.T) {
	t.Helper()
	until(t, "the same epochs on all nodes", func() bool {
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

// refused waits until each key was refused a few times: its limit is then used up.
func (c *crowd) refused(t *testing.T, keys []string) {
	t.Helper()
	until(t, "refusals of each key", func() bool {
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

// TestSlotsMoveUnderLoad: slots move to another master and back while their keys are counted. No
// decision is wrong, and few fail. Without moves, no decision fails.
func TestSlotsMoveUnderLoad(t *testing.T) {
	moveUnderLoad(t, 60, 1, 4*time.Millisecond, time.Second, 20)
}

// moveUnderLoad moves the slots of a dozen keys to a host and back, as often as tours says. It
// allows one failure in oneIn decisions.
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
	until(t, "1.5 s after the last move", func() bool { return time.Since(moved) > 1500*time.Millisecond })
	close(stop)
	<-done
	failed, total := c.within(t, int(limit))
	if late := c.last.Sub(moved); late > time.Second {
		t.Errorf("a decision failed %v after the last move, want no failure after 1s: %v", late, c.fault)
	}
	if failed > total/oneIn {
		t.Errorf("%d of %d decisions failed, want at most 1 in %d; the last with: %v", failed, total, oneIn, c.fault)
	}
	t.Logf("%d moves: %d of %d decisions failed with a timeout of %v, the last with: %v", 2*tours*len(r.slots), failed, total, budget, c.fault)
}

// TestHalfMovedSlotUnderLoad: while a slot is half moved, a moved key, an unmoved key and a new
// key are each counted once.
func TestHalfMovedSlotUnderLoad(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	// All keys share one slot.
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
		t.Fatalf("%d keys moved, want 3", n)
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
	failed, total := c.within(t, limit)
	t.Logf("%d of %d decisions failed, the last with: %v", failed, total, c.fault)
}
