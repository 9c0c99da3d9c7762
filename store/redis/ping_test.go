package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestPing: a store answers while its server does, and again after the server came back. A ping has
// the deadline of its caller.
func TestPing(t *testing.T) {
	server := testserver.Start(t)
	s, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ping := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return s.Ping(ctx)
	}
	if err := ping(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	if err := ping(100 * time.Millisecond); err == nil {
		t.Error("a server that hangs answers")
	}
	server.Resume()
	server.Kill()
	if err := ping(100 * time.Millisecond); err == nil {
		t.Error("a server that is gone answers")
	}
	server.Restart()
	for begun := time.Now(); ping(time.Second) != nil; {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the server does not answer again")
		}
	}
	if err := new(redis.Store).Ping(t.Context()); err == nil {
		t.Error("a store that was not opened answers")
	}
}

// TestPingOfACluster: one node that answers is enough.
func TestPingOfACluster(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	s, err := redis.Open(redis.Config{Kind: redis.Cluster, Slots: 4, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return s.Ping(ctx)
	}
	for _, node := range cluster.Nodes[:2] {
		if err := ping(); err != nil {
			t.Fatal(err)
		}
		cluster.Kill(node)
	}
	if err := ping(); err != nil {
		t.Errorf("with one node left: %v", err)
	}
	cluster.Kill(cluster.Nodes[2])
	if err := ping(); err == nil {
		t.Error("a cluster without nodes answers")
	}
}
