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
