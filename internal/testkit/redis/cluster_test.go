package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestClusterSurvivesItsMaster checks that a replica takes the slots of a killed master, and that
// the old master comes back as a replica.
func TestClusterSurvivesItsMaster(t *testing.T) {
	c := redis.StartCluster(t, 3, 1)
	if len(c.Nodes) != 6 || len(c.Masters()) != 3 {
		t.Fatalf("%d nodes, %d masters: want 6, 3", len(c.Nodes), len(c.Masters()))
	}
	old := c.MasterOf(c.SlotOf("river"))
	if n := len(c.Replicas(old)); n != 1 {
		t.Fatalf("%d replicas: want 1", n)
	}
	old.CLI("SET", "river", "wide")
	c.WaitReplicated(old)
	c.Kill(old)
	c.WaitHealthy(30 * time.Second)
	now := c.MasterOf(c.SlotOf("river"))
	if now == old || now.CLI("GET", "river") != "wide" {
		t.Errorf("after the master has ended, %s has %q: want another node, and wide", now.Addr, now.CLI("GET", "river"))
	}
	c.Restart(old)
	c.WaitHealthy(30 * time.Second)
	if got := c.Replicas(now); len(got) != 1 || got[0] != old {
		t.Errorf("the old master is not a replica of the new master")
	}
}
