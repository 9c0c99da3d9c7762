package redis_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/onekey"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestOneKey: an operator reads, resets and bans a key while 64 callers take its units.
func TestOneKey(t *testing.T) {
	addr := testserver.Start(t).Addr
	onekey.Run(t, func(t *testing.T) headgate.Store {
		t.Helper()
		return open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{addr}}, Timeout: patience})
	})
}

// TestOneKeyOnCluster is TestOneKey on a real cluster: the marker of bans and the key are on different nodes.
func TestOneKeyOnCluster(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	onekey.Run(t, func(t *testing.T) headgate.Store {
		t.Helper()
		return open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Timeout: patience})
	})
}
