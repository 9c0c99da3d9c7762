package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// probe probes a store.
func probe(t *testing.T, s *redis.Store) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return s.Probe(ctx)
}

// TestProbe: a probe fails where decisions fail, although the server answers a ping.
func TestProbe(t *testing.T) {
	server := testserver.Start(t)
	store := open(t, redis.Config{
		Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Breaker: breaker.Config{Failures: 1, Probe: time.Millisecond, MaxProbe: time.Millisecond},
	})
	if err := probe(t, store); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ spoil, repair []string }{
		{[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		{[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
	} {
		server.CLI(row.spoil...)
		if err := probe(t, store); err == nil {
			t.Errorf("%v: a probe succeeds", row.spoil)
		}
		if err := store.Ping(t.Context()); err != nil {
			t.Errorf("%v: %v", row.spoil, err)
		}
		server.CLI(row.repair...)
		until(t, "a probe", func() bool { return probe(t, store) == nil })
	}
	if err := new(redis.Store).Probe(t.Context()); err == nil {
		t.Error("a store that was not opened decides")
	}
}

// TestProbeOfACluster: each node gets a probe, and one node that decides is enough.
func TestProbeOfACluster(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	until(t, "the slots", func() bool { return len(store.Stats().Nodes) == 3 && probe(t, store) == nil })
	until(t, "a probe of each node", func() bool {
		for _, n := range store.Stats().Nodes {
			if n.Decided == 0 {
				return probe(t, store) != nil
			}
		}
		return true
	})
	for _, node := range cluster.Nodes[:2] {
		node.CLI("CONFIG", "SET", "maxmemory", "1")
	}
	if err := probe(t, store); err != nil {
		t.Errorf("with one node that decides: %v", err)
	}
	cluster.Nodes[2].CLI("CONFIG", "SET", "maxmemory", "1")
	until(t, "a failed probe", func() bool { return probe(t, store) != nil })
}

// TestDecidedAndUndecided: decisions that callers got, and those that they did not get because of the server.
func TestDecidedAndUndecided(t *testing.T) {
	server := testserver.Start(t)
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Breaker: breaker.Config{Failures: 3, Probe: time.Hour, MaxProbe: time.Hour}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	counts := func(decided, undecided, decisions uint64) {
		t.Helper()
		if n := store.Stats().Nodes[0]; n.Decided != decided || n.Undecided != undecided || n.Decisions != decisions {
			t.Errorf("%d decided, %d undecided, %d decisions, want %d, %d and %d", n.Decided, n.Undecided, n.Decisions, decided, undecided, decisions)
		}
	}
	for range 2 {
		if _, err := take(store, id, "k", patience); err != nil {
			t.Fatal(err)
		}
	}
	counts(2, 0, 2)
	server.CLI("CONFIG", "SET", "maxmemory", "1")
	for range 5 { // Three reach the server, and then the breaker is open.
		if _, err := take(store, id, "k", patience); err == nil {
			t.Fatal("a full server decided")
		}
	}
	counts(2, 5, 2)
}
