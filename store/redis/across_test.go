package redis_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// press takes single units of each key, times times, with concurrent callers. It counts the allowed
// units of each key, and all failed calls.
func press(store headgate.Store, id headgate.PolicyID, keys []string, times, callers int) (passed []atomic.Int64, failed *atomic.Int64) {
	passed, failed = make([]atomic.Int64, len(keys)), new(atomic.Int64)
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= times*len(keys) {
					return
				}
				d, err := take(store, id, keys[i%len(keys)], patience)
				switch {
				case err != nil:
					failed.Add(1)
				case d.Verdict == headgate.Allow:
					passed[i%len(keys)].Add(1)
				}
			}
		})
	}
	all.Wait()
	return passed, failed
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	return keys
}

// TestOneCallForManySlots: on a cluster of Redis 7, one call decides all queries that wait for a
// master, whatever their slots. Each algorithm keeps its limit exactly.
func TestOneCallForManySlots(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Timeout: patience})
	keys := numbered(200)
	const limit = 5
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingWindow, headgate.SlidingLog} {
		policy := forever(a, limit)
		if a == headgate.SlidingWindow {
			policy.SubWindows = 6
		}
		id := prepare(t, store, policy)
		until(t, "a read of the slots", func() bool { return len(store.Stats().Nodes) == 3 })
		passed, failed := press(store, id, keys, 2*limit, 128)
		for i := range passed {
			if n := passed[i].Load(); n != limit {
				t.Errorf("%s, %s: %d units allowed, want %d; %d calls failed", a, keys[i], n, limit, failed.Load())
			}
		}
		if err := store.Forget(t.Context(), opsOf(keys, id)); err != nil {
			t.Fatal(err)
		}
	}
	oneCallEach(t, cluster, store, prepare(t, store, forever(headgate.TokenBucket, limit)))
}

// oneCallEach checks that a few calls decide the queries that wait for paused masters.
func oneCallEach(t *testing.T, cluster *testserver.Cluster, store *redis.Store, id headgate.PolicyID) {
	t.Helper()
	const callers = 300 // On a slow machine, 96 calls may be in flight.
	keys := numbered(callers)
	before := callsOf(store)
	for _, node := range cluster.Nodes {
		node.Pause()
	}
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			if d, err := take(store, id, key, patience); err != nil || d.Verdict != headgate.Allow {
				t.Errorf("%s: got %+v and error %v, want Allow", key, d, err)
			}
		})
	}
	until(t, "half of the callers in the queues", func() bool {
		n := 0
		for _, node := range store.Stats().Nodes {
			n += node.Waiting
		}
		return n >= callers/2
	})
	for _, node := range cluster.Nodes {
		node.Resume()
	}
	all.Wait()
	if n := callsOf(store) - before; n > callers/2 {
		t.Errorf("%d decisions took %d calls, want at most %d", callers, n, callers/2)
	}
}

func callsOf(store *redis.Store) (n uint64) {
	for _, node := range store.Stats().Nodes {
		n += node.Calls
	}
	return n
}

func opsOf(keys []string, id headgate.PolicyID) []headgate.Op {
	ops := make([]headgate.Op, len(keys))
	for i, key := range keys {
		ops[i] = headgate.Op{Key: key, Policy: id, Cost: 1}
	}
	return ops
}

// TestManySlotsWhileOneMoves: one slot is being moved, and only some of its keys have moved.
// Keys of other slots share its calls. Each key is counted once, and no call fails.
func TestManySlotsWhileOneMoves(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	const limit = 40
	id := prepare(t, store, forever(headgate.FixedWindow, limit))
	keys := numbered(60)
	sum := make([]int64, len(keys))
	play := func(times int) {
		t.Helper()
		passed, failed := press(store, id, keys, times, 64)
		for i := range passed {
			sum[i] += passed[i].Load()
		}
		if n := failed.Load(); n > 0 {
			t.Errorf("%d calls failed, want none", n)
		}
	}
	play(10)
	var moves []*testserver.Move
	for i, slot := range slotsOf(t, keys[:12]) {
		from := cluster.MasterOf(slot)
		move := cluster.BeginMove(slot, from, another(cluster, from))
		if i%3 > 0 {
			move.Keys(-1)
		}
		moves = append(moves, move)
	}
	play(10)
	for _, move := range moves {
		move.Keys(-1)
		move.Finish()
	}
	play(10)
	play(limit)
	for i, n := range sum {
		if n != limit {
			t.Errorf("%s: %d units allowed, want %d", keys[i], n, limit)
		}
	}
}

// TestManySlotsWhileAMasterDies: a master is killed, and its replica takes over. Keys of other
// masters keep their counts. The keys of the killed master exceed their limits by at most the
// lost units.
func TestManySlotsWhileAMasterDies(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 1)
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	const limit = 20
	id := prepare(t, store, forever(headgate.FixedWindow, limit))
	keys := numbered(60)
	dead := cluster.MasterOf(slotsOf(t, keys[:1])[0])
	before, failed := press(store, id, keys, 10, 64)
	if n := failed.Load(); n > 0 {
		t.Fatalf("%d calls failed, want none", n)
	}
	homes := make([]*testserver.Server, len(keys))
	for i, slot := range slotsOf(t, keys) {
		homes[i] = cluster.MasterOf(slot)
	}
	cluster.Kill(dead)
	during, _ := press(store, id, keys, 2, 64)
	cluster.WaitHealthy(patience) // A node that does not know the new master redirects clients to the killed one.
	until(t, "an answer of each master", func() bool {
		for _, key := range keys { // Each key has a second window in the same slot.
			op := headgate.Op{Key: key, Policy: id, Window: 1, Kind: headgate.Peek, Cost: 1}
			if store.Apply(t.Context(), []headgate.Op{op}, make([]headgate.Decision, 1)) != nil {
				return false
			}
		}
		return true
	})
	after, failed := press(store, id, keys, limit, 64)
	if n := failed.Load(); n > 0 {
		t.Errorf("%d calls failed after the failover, want none", n)
	}
	for i := range keys {
		n := before[i].Load() + during[i].Load() + after[i].Load()
		if homes[i] != dead && n != limit || n > 2*limit || n < limit-2 {
			t.Errorf("%s on %s: %d units allowed with a limit of %d (before the failover %d, during %d, after %d)", keys[i], homes[i].Addr, n, limit, before[i].Load(), during[i].Load(), after[i].Load())
		}
	}
}
