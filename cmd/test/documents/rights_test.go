package documents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// The user in the page's blocks.
const (
	rightsUser     = "headgate"
	rightsPassword = "PASSWORD"
)

// grant runs the commands of a block of the page on the servers.
func grant(t *testing.T, kind string, servers ...*testserver.Server) {
	t.Helper()
	for _, line := range block(t, kind) {
		for _, server := range servers {
			if _, err := server.Do(strings.Fields(line)...); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
}

// rights lists the rights of a block: each word with a plus sign.
func rights(t *testing.T, kind string) []string {
	t.Helper()
	var all []string
	for _, line := range block(t, kind) {
		for word := range strings.FieldsSeq(line) {
			if right, ok := strings.CutPrefix(word, "+"); ok {
				all = append(all, right)
			}
		}
	}
	return all
}

// setUser changes the user on the servers, and clears their logs of refusals.
func setUser(t *testing.T, word string, servers ...*testserver.Server) {
	t.Helper()
	for _, server := range servers {
		for _, words := range [][]string{{"ACL", "SETUSER", rightsUser, word}, {"ACL", "LOG", "RESET"}, {"SCRIPT", "FLUSH"}} {
			if _, err := server.Do(words...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// refusals lists the commands that the servers refused because the user lacks a right.
func refusals(t *testing.T, servers ...*testserver.Server) []string {
	t.Helper()
	var all []string
	for _, server := range servers {
		reply, err := server.Do("ACL", "LOG")
		if err != nil {
			t.Fatal(err)
		}
		entries, ok := reply.([]any)
		if !ok {
			t.Fatalf("ACL LOG returns %T", reply)
		}
		for _, entry := range entries {
			all = append(all, fmt.Sprint(entry))
		}
	}
	return all
}

// everything runs all jobs and stops at the first error.
func everything(t *testing.T, c redis.Config) error {
	t.Helper()
	store := openRedis(t, c, rightsUser, rightsPassword)
	defer store.Close()
	for _, j := range append(jobs(), job{"a request in flight", inFlight}, job{"long logs", longLogs}) {
		if err := j.run(t, store); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
	}
	return nil
}

// TestRights checks that the page's rights are enough for all jobs, and that each right is needed.
func TestRights(t *testing.T) {
	server := testserver.Start(t)
	grant(t, "acl", server)
	if err := everything(t, single(server)); err != nil {
		t.Fatal(err)
	}
	if refused := refusals(t, server); len(refused) > 0 {
		t.Fatalf("refused with all rights: %q", refused)
	}
	all := rights(t, "acl")
	if len(all) < 10 {
		t.Fatalf("the page has only the rights %q", all)
	}
	for _, right := range all {
		t.Run("without "+right, func(t *testing.T) {
			setUser(t, "-"+right, server)
			defer setUser(t, "+"+right, server)
			defer server.CLI("FLUSHALL")
			err := error(nil)
			if right == "ping" {
				awaitPing(t, server)
			} else {
				err = everything(t, single(server))
			}
			if len(refusals(t, server)) == 0 {
				t.Errorf("no command was refused: %v", err)
			}
		})
	}
	setUser(t, "resetkeys", server)
	if err := everything(t, single(server)); err == nil || !strings.Contains(err.Error(), "docs/stores.md") {
		t.Errorf("without the keys: %v", err)
	}
}

// awaitPing leaves a store idle until it pings its connection.
func awaitPing(t *testing.T, server *testserver.Server) {
	t.Helper()
	store := openRedis(t, single(server), rightsUser, rightsPassword)
	run(t, store, jobs()[0])
	look, end := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for len(refusals(t, server)) == 0 {
		select {
		case <-look.C:
		case <-end:
			t.Fatal("no ping has come within 20 s")
		}
	}
}

// TestRightsOfADatabase checks that a database other than 0 needs one more right.
func TestRightsOfADatabase(t *testing.T) {
	server := testserver.Start(t)
	grant(t, "acl", server)
	c := single(server)
	c.Client.SelectDB = 2
	c.Timeout = 200 * time.Millisecond
	if err := everything(t, c); !errors.Is(err, headgate.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without select: %v", err)
	}
	grant(t, "acl-database", server)
	c.Timeout = 10 * time.Second
	if err := everything(t, c); err != nil {
		t.Error(err)
	}
}

// TestRightsOfACluster checks that a cluster needs more rights, including those for a moving slot.
func TestRightsOfACluster(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	grant(t, "acl", cluster.Nodes...)
	grant(t, "acl-cluster", cluster.Nodes...)
	c := redis.Config{
		Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Timeout: 10 * time.Second,
	}
	if err := everything(t, c); err != nil {
		t.Fatal(err)
	}
	// After the first key has moved, servers accept commands with one key. They answer commands
	// with several keys with TRYAGAIN.
	move := beginMove(t, cluster)
	run(t, openRedis(t, c, rightsUser, rightsPassword), jobs()[0])
	if refused := refusals(t, cluster.Nodes...); len(refused) > 0 {
		t.Fatalf("refused with all rights: %q", refused)
	}
	for _, right := range []string{"cluster|slots", "asking"} {
		setUser(t, "-"+right, cluster.Nodes...)
		short := c
		short.Timeout = 200 * time.Millisecond
		err := everything(t, short)
		if err == nil || len(refusals(t, cluster.Nodes...)) == 0 {
			t.Errorf("without %s: %v, and the servers have refused %q", right, err, refusals(t, cluster.Nodes...))
		}
		setUser(t, "+"+right, cluster.Nodes...)
	}
	move.Rollback()
	if known := rights(t, "acl-cluster"); !slices.Equal(known, []string{"cluster|slots", "cluster|shards", "asking"}) {
		t.Errorf("the page has the rights %q for a cluster", known)
	}
}

// beginMove starts to move the slot of the jobs' first key, and moves all keys of the slot.
func beginMove(t *testing.T, cluster *testserver.Cluster) *testserver.Move {
	t.Helper()
	store := openRedis(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}}, "", "")
	for _, node := range cluster.Nodes {
		node.CLI("FLUSHALL")
	}
	run(t, store, jobs()[0])
	for i, node := range cluster.Nodes {
		name := node.CLI("KEYS", "*")
		if name == "" {
			continue
		}
		move := cluster.BeginMove(cluster.SlotOf(name), node, cluster.Nodes[(i+1)%len(cluster.Nodes)])
		move.Keys(-1)
		return move
	}
	t.Fatal("no node has the key")
	return nil
}

// TestRightsOfSentinel checks that a store with sentinels also queries the role of the master.
func TestRightsOfSentinel(t *testing.T) {
	set := testserver.StartSentinel(t, 1, 1)
	grant(t, "acl", set.Nodes...)
	c := redis.Config{Kind: redis.Sentinel, Client: rueidis.ClientOption{InitAddress: set.Addrs()}, Timeout: 2 * time.Second}
	c.Client.Sentinel.MasterSet, c.Client.Sentinel.Dialer.Timeout = set.Name, time.Second
	if err := everything(t, c); err == nil || len(refusals(t, set.Nodes...)) == 0 {
		t.Errorf("without role: %v", err)
	}
	grant(t, "acl-sentinel", set.Nodes...)
	c.Timeout = 10 * time.Second
	if err := everything(t, c); err != nil {
		t.Error(err)
	}
}
