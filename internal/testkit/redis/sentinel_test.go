package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestSentinelReplacesItsMaster checks that a replica becomes master with its data, and that the
// old master comes back as a replica.
func TestSentinelReplacesItsMaster(t *testing.T) {
	s := redis.StartSentinel(t, 2, 3)
	if got := s.MasterAddr(); got != s.Nodes[0].Addr {
		t.Fatalf("the master is %s: want %s", got, s.Nodes[0].Addr)
	}
	s.Master().CLI("SET", "river", "wide")
	s.WaitReplicated()
	old := s.KillMaster()
	now := s.WaitMaster(old.Addr, 30*time.Second)
	if got := s.Master().CLI("GET", "river"); now == old.Addr || got != "wide" {
		t.Errorf("the new master %s has %q: want another node than %s, and wide", now, got, old.Addr)
	}
	old.Restart()
	if again := s.WaitMaster(old.Addr, 30*time.Second); again != now {
		t.Errorf("the master is %s after the return of the old master: want %s", again, now)
	}
}
