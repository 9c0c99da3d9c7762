package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// keyOn gives a key that the given master of the cluster counts.
func keyOn(t *testing.T, c *testserver.Cluster, node *testserver.Server, name string) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprint(name, i)
		if c.MasterOf(slotsOf(t, []string{key})[0]) == node {
			return key
		}
	}
	t.Fatal("none of 1000 keys is on the node")
	return ""
}

// TestAwayNodeSpendsNothingElsewhere: one key of a group is on a node with an open breaker. The
// group is not decided, and takes no units of its keys on other nodes. Otherwise undecided
// requests would use up limits that many clients share.
func TestAwayNodeSpendsNothingElsewhere(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1000, Per: 24 * time.Hour}})
	away, here := keyOn(t, cluster, cluster.Nodes[0], "client "), keyOn(t, cluster, cluster.Nodes[1], "all ")
	until(t, "a read of the slots", func() bool {
		_, err := take(store, id, here, time.Second)
		return err == nil && len(store.Stats().Nodes) == 3
	})
	cluster.Nodes[0].Pause()
	defer cluster.Nodes[0].Resume()
	until(t, "the breaker of the node to open", func() bool {
		_, err := take(store, id, away, 20*time.Millisecond)
		return errors.Is(err, headgate.ErrUnavailable)
	})
	look := func() int64 {
		return apply(t, store, headgate.Op{Key: here, Policy: id, Kind: headgate.Peek})[0].Remaining
	}
	before, undecided := look(), int64(0)
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := store.Apply(ctx, []headgate.Op{
			{Key: here, Policy: id, Cost: 1}, {Key: away, Policy: id, Cost: 1},
		}, make([]headgate.Decision, 2))
		cancel()
		if err == nil {
			t.Fatal("a group with a key on a paused node was decided, want an error")
		}
		if errors.Is(err, headgate.ErrUnavailable) {
			undecided++
		}
	}
	if undecided < 10 {
		t.Fatalf("the open breaker refused %d of 50 groups, want at least 10", undecided)
	}
	if spent, probes := before-look(), 50-undecided; spent > probes {
		t.Errorf("%d units were taken on another node by %d undecided groups, want at most the number of probes, %d",
			spent, 50, probes)
	}
}

// TestOddReceipts: Return ignores a receipt with a cost above the limit, alone and among others.
func TestOddReceipts(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1000, Per: 24 * time.Hour}})
	d, err := take(store, id, "a", patience)
	if err != nil {
		t.Fatal(err)
	}
	other, err := take(store, id, "b", patience)
	if err != nil {
		t.Fatal(err)
	}
	odd := d.Receipt
	odd.Cost, odd.Nonce = 5000, odd.Nonce+1
	if err := store.Return(t.Context(), []headgate.Receipt{odd}); err != nil {
		t.Errorf("return of a receipt with a cost above the limit: %v", err)
	}
	func() {
		defer func() {
			if fault := recover(); fault != nil {
				t.Errorf("return of a receipt with a cost above the limit among others: panic: %v", fault)
			}
		}()
		if err := store.Return(t.Context(), []headgate.Receipt{odd, d.Receipt, other.Receipt}); err != nil {
			t.Errorf("return of a receipt with a cost above the limit among others: %v", err)
		}
	}()
}

// TestNothingIsSentForWhatCannotBeAsked: an invalid Op makes no call. On a cluster, a call
// without keys among others makes the client library panic in its own goroutine: "Mixing no-slot
// and cross slot commands in DoMulti".
func TestNothingIsSentForWhatCannotBeAsked(t *testing.T) {
	store := newStore(t, testserver.Start(t).Addr, nil)
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1000, Per: 24 * time.Hour}})
	if _, err := take(store, id, "a", patience); err != nil {
		t.Fatal(err)
	}
	before := store.Stats().Nodes[0].Calls
	err := store.Apply(t.Context(), []headgate.Op{{Key: "a", Policy: id, Cost: 1, Kind: 9}}, make([]headgate.Decision, 1))
	if err == nil {
		t.Error("an Op of Kind 9 was decided, want an error")
	}
	if sent := store.Stats().Nodes[0].Calls - before; sent != 0 {
		t.Errorf("%d calls were sent for an invalid Op, want none (error %v)", sent, err)
	}
}

// TestProbedByGroups: a recovered node is used again, even if all groups have several keys on it.
// One query of the group is the probe, and the other queries are sent with it.
func TestProbedByGroups(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	store := open(t, redis.Config{
		Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()},
		Breaker: breaker.Config{Failures: 2, Probe: 20 * time.Millisecond, MaxProbe: 100 * time.Millisecond},
	})
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100_000, Per: 24 * time.Hour}})
	node := cluster.Nodes[0]
	ops := []headgate.Op{
		{Key: keyOn(t, cluster, node, "one "), Policy: id, Cost: 1}, {Key: keyOn(t, cluster, node, "other "), Policy: id, Cost: 1},
	}
	group := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return store.Apply(ctx, ops, make([]headgate.Decision, 2))
	}
	until(t, "a read of the slots", func() bool { return group(time.Second) == nil && len(store.Stats().Nodes) == 3 })
	node.Pause()
	until(t, "the breaker of the node to open", func() bool { return errors.Is(group(20*time.Millisecond), headgate.ErrUnavailable) })
	node.Resume()
	var err error
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) { //nolint:forbidigo // sleep: it polls, and there is a deadline
		if err = group(200 * time.Millisecond); err == nil {
			return
		}
	}
	t.Errorf("5 s after the node recovered, groups still fail: %v", err)
}
