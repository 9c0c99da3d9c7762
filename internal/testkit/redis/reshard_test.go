package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestSlotsMove checks the three states of a move. During the move, the old master redirects
// clients. A rollback restores everything. Finish has moved every key, whatever its name.
func TestSlotsMove(t *testing.T) {
	c := redis.StartCluster(t, 3, 0)
	slot := c.SlotOf("{river}")
	from := c.MasterOf(slot)
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	var keys []string
	for i := range 130 {
		keys = append(keys, fmt.Sprintf("{river}\n\x00%d", i))
	}
	keys = append(keys, "{river}")
	for _, key := range keys {
		set(t, from, key)
	}
	m := c.BeginMove(slot, from, to)
	if n := m.Keys(30); n != 30 {
		t.Errorf("%d keys moved: want 30", n)
	}
	if asked := refused(from, keys, "ASK"); asked != 30 {
		t.Errorf("the old master redirects clients for %d keys: want 30", asked)
	}
	m.Rollback()
	if n := refused(from, keys, ""); n != 0 || c.MasterOf(slot) != from {
		t.Errorf("after Rollback %d keys are refused, the owner of the slot is %s: want 0, %s", n, c.MasterOf(slot).Addr, from.Addr)
	}
	c.MoveSlot(slot, from, to)
	if n := refused(to, keys, ""); n != 0 || c.MasterOf(slot) != to {
		t.Errorf("after MoveSlot %d keys are refused, the owner of the slot is %s: want 0, %s", n, c.MasterOf(slot).Addr, to.Addr)
	}
	if n := refused(from, keys, "MOVED"); n != len(keys) {
		t.Errorf("the old master says MOVED for %d keys: want %d", n, len(keys))
	}
	pausedNodeDoesNotCount(t, c, slot)
}

// pausedNodeDoesNotCount checks that a slot has no owner while its only master is paused.
func pausedNodeDoesNotCount(t *testing.T, c *redis.Cluster, slot int) {
	t.Helper()
	master := c.MasterOf(slot)
	master.Pause()
	if c.MasterOf(slot) != master {
		t.Error("the slot has another owner, although there is no replica")
	}
	if err := c.Unhealthy(); err == nil {
		t.Error("the cluster is healthy without a master")
	}
	master.Resume()
	c.WaitHealthy(30 * time.Second)
}

func set(t *testing.T, node *redis.Server, key string) {
	t.Helper()
	if _, err := node.Do("SET", key, "x"); err != nil {
		t.Fatal(err)
	}
}

// refused counts the keys that node refuses with an error that starts with reason.
func refused(node *redis.Server, keys []string, reason string) int {
	n := 0
	for _, key := range keys {
		got, err := node.Do("GET", key)
		if got != "x" && (reason == "" || err != nil && strings.Contains(err.Error(), ": "+reason+" ")) {
			n++
		}
	}
	return n
}
