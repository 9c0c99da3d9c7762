package redis_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// patient is a breaker that does not open in these tests, so that each call reaches the server.
var patient = breaker.Config{Failures: 1 << 30}

// set changes settings of a server.
func set(t *testing.T, server *testserver.Server, words ...string) {
	t.Helper()
	server.CLI(append([]string{"CONFIG", "SET"}, words...)...)
}

// refuseToSave makes a server fail to save its data: a folder has the name of its file.
func refuseToSave(t *testing.T, server *testserver.Server) {
	t.Helper()
	_, dir, _ := strings.Cut(server.CLI("CONFIG", "GET", "dir"), "\n")
	if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	set(t, server, "save", "1 1")
	server.CLI("BGSAVE")
	until(t, "a failed save", func() bool {
		return strings.Contains(server.CLI("INFO", "persistence"), "rdb_last_bgsave_status:err")
	})
}

// load makes a server load data for several seconds.
func load(t *testing.T, server *testserver.Server) {
	t.Helper()
	for i := range 500 {
		if _, err := server.Do("SET", fmt.Sprint("key ", i), strings.Repeat("x", 2<<10)); err != nil {
			t.Fatal(err)
		}
	}
	server.CLI("SAVE")
	server.Restart()
}

// TestRefusingReplies: a server says on a live connection that it cannot decide. Each reply closes the
// connection, and the error says what to do about this cause.
func TestRefusingReplies(t *testing.T) {
	for _, row := range []struct {
		reply, advice string
		settings      []string
		spoil         func(t *testing.T, server *testserver.Server)
	}{
		{"READONLY", "leads to a master", nil, func(_ *testing.T, s *testserver.Server) { s.CLI("REPLICAOF", "127.0.0.1", "1") }},
		{"MASTERDOWN", "a replica without a master", nil, func(t *testing.T, s *testserver.Server) {
			t.Helper()
			set(t, s, "replica-serve-stale-data", "no")
			s.CLI("REPLICAOF", "127.0.0.1", "1")
		}},
		{"NOREPLICAS", "If a replica was promoted", nil, func(_ *testing.T, s *testserver.Server) {
			s.CLI("CONFIG", "SET", "min-replicas-to-write", "1")
		}},
		{"LOADING", "is loading its data", []string{"--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024"}, load},
		{"OOM", "raise maxmemory", nil, func(_ *testing.T, s *testserver.Server) { s.CLI("CONFIG", "SET", "maxmemory", "1") }},
		{"MISCONF", "free disk space", nil, refuseToSave},
		{"CLUSTERDOWN", "redis+cluster in place of redis", []string{"--cluster-enabled", "yes"}, func(*testing.T, *testserver.Server) {}},
	} {
		t.Run(row.reply, func(t *testing.T) {
			server := testserver.Start(t, row.settings...)
			link := network.New(t, server.Addr)
			store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}, Breaker: patient})
			id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
			until(t, "a connection", func() bool { _, err := take(store, id, "k", patience); return err == nil || row.reply == "CLUSTERDOWN" })
			row.spoil(t, server)
			var err error
			until(t, "the reply "+row.reply, func() bool {
				_, err = take(store, id, "k", patience)
				return err != nil && strings.Contains(err.Error(), row.reply)
			})
			if !strings.Contains(err.Error(), row.advice) {
				t.Errorf("got %q, want the advice %q", err, row.advice)
			}
			accepted := link.Accepted()
			until(t, "another connection", func() bool { _, _ = take(store, id, "k", patience); return link.Accepted() > accepted })
		})
	}
}

// TestLeavingIsPaced: a server stays a replica, and callers do not stop. The store dials its address at most ten
// times a second.
func TestLeavingIsPaced(t *testing.T) {
	server := testserver.Start(t)
	link := network.New(t, server.Addr)
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}, Breaker: patient})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.CLI("REPLICAOF", "127.0.0.1", "1")
	before, begun, calls := link.Accepted(), time.Now(), 0
	// A busy machine makes fewer calls: the store could also dial once a call after few.
	for ; time.Since(begun) < time.Second || calls < 3*mostDials(begun) && time.Since(begun) < 15*time.Second; calls++ {
		if _, err := take(store, id, "k", patience); err == nil {
			t.Fatal("a replica decided")
		}
	}
	most := mostDials(begun)
	dials := link.Accepted() - before
	if t.Logf("%d calls made %d connections in %s", calls, dials, time.Since(begun)); dials > most || dials < 2 {
		t.Errorf("%d calls made %d connections, want 2 to %d", calls, dials, most)
	}
}

// mostDials is the most connections since a time.
func mostDials(begun time.Time) int { return int(time.Since(begun)/(100*time.Millisecond)) + 1 }

// TestRepliesThatKeepTheConnection: errors about one call, and refusals of the caller, close no connection.
func TestRepliesThatKeepTheConnection(t *testing.T) {
	server := testserver.StartACL(t, "app", "secret", "~hg*", "+@all")
	link := network.New(t, server.Addr)
	store := open(t, redis.Config{
		Client: rueidis.ClientOption{InitAddress: []string{link.Addr}, Username: "app", Password: "secret"}, Breaker: patient,
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	accepted := link.Accepted()
	server.CLI("ACL", "SETUSER", "app", "-set")
	if _, err := take(store, id, "k", patience); err == nil || !strings.Contains(err.Error(), "docs/stores.md") {
		t.Errorf("without a right: %v", err)
	}
	server.CLI("ACL", "SETUSER", "app", "+set")
	server.CLI("SCRIPT", "FLUSH")
	if _, err := take(store, id, "k", patience); err != nil {
		t.Error(err)
	}
	if link.Accepted() != accepted {
		t.Errorf("%d connections, want %d", link.Accepted(), accepted)
	}
}

// TestProxysErrors: a proxy answers in place of a server that it cannot reach. The connection is closed, and the
// error names the proxy.
func TestProxysErrors(t *testing.T) {
	for _, reply := range []string{"-upstream failure\r\n", "-no upstream host\r\n", "-ERR Connection refused\r\n", "-ERR upstream timed out\r\n"} {
		forger := network.NewForger(t, testserver.Start(t).Addr)
		link := network.New(t, forger.Addr)
		store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}, Breaker: patient})
		id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
		if _, err := take(store, id, "k", patience); err != nil {
			t.Fatal(err)
		}
		accepted := link.Accepted()
		forger.Replace("EVALSHA", say(reply))
		if _, err := take(store, id, "k", patience); err == nil || !strings.Contains(err.Error(), "read the log of the proxy") {
			t.Errorf("%q: %v", reply, err)
		}
		if _, err := take(store, id, "k", patience); err != nil || link.Accepted() != accepted+1 {
			t.Errorf("%q: %v, %d connections, want %d", reply, err, link.Accepted(), accepted+1)
		}
	}
}

// dialer dials other addresses in place of known ones.
func dialer(via map[string]string) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if other, has := via[addr]; has {
			addr = other
		}
		return d.DialContext(ctx, "tcp", addr)
	}
}

// TestSentinelsMasterBehindAForwarder: the sentinels name an address that by now leads to another server.
func TestSentinelsMasterBehindAForwarder(t *testing.T) {
	s := testserver.StartSentinel(t, 1, 1)
	old, next := s.Nodes[0], s.Nodes[1]
	link := network.New(t, old.Addr)
	store := open(t, redis.Config{Kind: redis.Sentinel, Client: rueidis.ClientOption{
		InitAddress: s.Addrs(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name}, DialCtxFn: dialer(map[string]string{old.Addr: link.Addr}),
	}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	until(t, "a decision", func() bool { _, err := take(store, id, "k", patience); return err == nil })
	s.Sentinels[0].Pause() // It would undo the change.
	next.Promote()
	old.Follow(next)
	until(t, "a refusal", func() bool { _, err := take(store, id, "k", time.Second); return err != nil })
	link.Redirect(next.Addr)
	changed := time.Now()
	until(t, "a decision of the new master", func() bool { _, err := take(store, id, "k", time.Second); return err == nil })
	late := time.Since(changed)
	if t.Logf("right after %s", late); late > 15*time.Second {
		t.Errorf("right after %s, want at most 2s on an idle machine", late)
	}
}

// TestClusterNodeIsLeft: a node of a cluster says that it cannot write. Only the connection to this node is
// closed.
func TestClusterNodeIsLeft(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	broken, other := cluster.Nodes[0], cluster.Nodes[1]
	forger := network.NewForger(t, broken.Addr)
	via := map[string]string{}
	links := map[*testserver.Server]*network.Link{}
	for _, node := range cluster.Nodes {
		links[node] = network.New(t, node.Addr)
		via[node.Addr] = links[node].Addr
	}
	links[broken].Redirect(forger.Addr)
	store := open(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{
		InitAddress: cluster.Addrs(), DialCtxFn: dialer(via),
	}, Breaker: patient})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	here, there := keyOn(t, cluster, broken, "here "), keyOn(t, cluster, other, "there ")
	until(t, "decisions of both nodes", func() bool {
		_, one := take(store, id, here, time.Second)
		_, two := take(store, id, there, time.Second)
		return one == nil && two == nil && len(store.Stats().Nodes) == 3
	})
	before, beside := links[broken].Accepted(), links[other].Accepted()
	forger.Replace("EVALSHA", say("-READONLY You can't write against a read only replica.\r\n"))
	if _, err := take(store, id, here, patience); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("got %v, want the reply", err)
	}
	until(t, "another connection to the node", func() bool {
		_, err := take(store, id, here, patience)
		return err == nil && links[broken].Accepted() > before
	})
	if links[other].Accepted() != beside {
		t.Errorf("%d connections to another node, want %d", links[other].Accepted(), beside)
	}
}
