package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestFailoverLosesALimitsWorth: a master is killed before its replica has its latest counts. Only
// the lost units are admitted again, so the total is at most twice the limit.
func TestFailoverLosesALimitsWorth(t *testing.T) {
	s := testserver.StartSentinel(t, 1, 1)
	store := open(t, redis.Config{Kind: redis.Sentinel, Client: rueidis.ClientOption{
		InitAddress: s.Addrs(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name},
	}})
	const limit, heard = 20, 8
	algorithms := []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog}
	var ids []headgate.PolicyID
	for _, a := range algorithms {
		ids = append(ids, prepare(t, store, forever(a, limit)))
	}
	admitted := map[string]int{}
	spend := func(n int, budget time.Duration) {
		for i, id := range ids {
			key := algorithms[i].String()
			for range n {
				if d, err := take(store, id, key, budget); err == nil && d.Verdict == headgate.Allow {
					admitted[key]++
				}
			}
		}
	}
	spend(heard, patience)
	s.WaitReplicated()
	old := s.Master()
	deafen(t, s, old)
	spend(limit, patience)
	for key, n := range admitted {
		if n != limit {
			t.Fatalf("%s: %d units admitted before the failover, want %d", key, n, limit)
		}
	}
	failOver(t, s, old)
	until(t, "a decision by the new master", func() bool { _, err := look(store, ids[0], "none"); return err == nil })
	spend(2*limit, patience)
	for key, n := range admitted {
		if n != 2*limit-heard {
			t.Errorf("%s: %d units admitted in total, want the limit of %d plus %d lost units", key, n, limit, limit-heard)
		}
	}
	t.Log(fmt.Sprint(admitted), " units admitted with a limit of ", limit)
}

// deafen stops replication from the master: it pauses the replicas and closes their connections
// to the master.
func deafen(t *testing.T, s *testserver.Sentinel, master *testserver.Server) {
	t.Helper()
	for _, node := range s.Nodes {
		if node != master {
			node.Pause()
		}
	}
	master.CLI("CLIENT", "KILL", "TYPE", "replica")
}

// failOver kills a master whose replicas were deafened, and waits for the next one.
func failOver(t *testing.T, s *testserver.Sentinel, master *testserver.Server) {
	t.Helper()
	master.Kill()
	for _, node := range s.Nodes {
		if node != master {
			node.Resume()
		}
	}
	s.WaitMaster(master.Addr, 30*time.Second)
}
