package redis_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	memcachedserver "github.com/headgate/headgate/internal/testkit/memcached"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/redis"
)

// hostileKeys are different keys with which a client could try to reach a command, a slot, a
// pattern or the count of another client.
func hostileKeys() []string {
	long := strings.Repeat("k", 64<<10)
	return []string{
		"", " ", "a", "A", "a ", " a", "a\x00", "\x00a", "\x00", "{", "}", "{}", "{a}", "{{a}}", "}{a", "a{}b", "{a}b", "{b}a",
		"canary", "hg3:canary", "hg3:{canary}:0", "hg3:{}:0", "hg3:", "hg3:{a}:0:l", "*", "hg3:*", "?", "[a]", "^a$", "\\", "\\0",
		"a\n", "a\r\n", "\r\nFLUSHALL\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "\nflush_all\n", "a\r\nset canary 0 0 4\r\ndead\r\n",
		"a b", "a\tb", "GET", "EVAL", "' .. redis.call('FLUSHALL') .. '", "]] redis.call('FLUSHALL') --", "%s%d%n", "$(id)", "`id`",
		"\xff", "\xfe\xff", "\xc3\x28", "a\xffb", "\u00e9", "e\u0301", "\u202e", "\U0001f6b0", "ſ", "s", "K", "\u212a",
		long, long + "x", "x" + long, strings.Repeat("{", 64<<10), strings.Repeat("\x00", 64<<10), strings.Repeat("\xff", 64<<10),
		"1", "01", "1.0", "1e0", "-1", "NaN", "nil", "null", "false", "a:b", "a|b", "a/b", "a,b", "a;b", "a=b", "../a",
	}
}

// distinct takes a different number of units of each key, in single calls and in one call. It
// checks that each key has its own count.
func distinct(t *testing.T, store headgate.Store, algorithms ...headgate.Algorithm) {
	t.Helper()
	const limit = 1000
	keys := hostileKeys()
	for w, a := range algorithms {
		id := prepare(t, store, forever(a, limit))
		var ops []headgate.Op
		for i, key := range keys {
			op := headgate.Op{Key: key, Policy: id, Window: uint8(w), Group: uint8(i), Cost: int64(i + 1)}
			apply(t, store, op)
			ops = append(ops, op)
		}
		for from := 0; from < len(ops); from += 100 {
			apply(t, store, ops[from:min(from+100, len(ops))]...)
		}
		for i := range ops {
			ops[i].Kind, ops[i].Cost = headgate.Peek, 0
			if d := apply(t, store, ops[i])[0]; d.Remaining != limit-2*int64(i+1) {
				t.Errorf("%v: key %.40q has %d units remaining, want %d", a, ops[i].Key, d.Remaining, limit-2*(i+1))
			}
		}
		// This group has all keys. On a cluster, the keys have many slots.
		for i := range ops {
			ops[i].Kind, ops[i].Group, ops[i].Cost = headgate.Take, 0, 1
		}
		for i, d := range apply(t, store, ops...) {
			if want := limit - 2*int64(i+1) - 1; d.Verdict != headgate.Allow || d.Remaining != want {
				t.Errorf("%v: key %.40q in one group: got %v and %d units remaining, want Allow and %d", a, keys[i], d.Verdict, d.Remaining, want)
			}
		}
	}
}

// ours matches the names that the store may use, whatever keys clients choose.
func ours() *regexp.Regexp {
	return regexp.MustCompile(`^hg3:\{[A-Za-z0-9_-]+\}:([A-Za-z0-9_-]+:)?[0-9]+[tlfgwb][0-9a-z-]*(:l|:r[0-9a-z]+)?$`)
}

// unharmed checks that a server has only names of the store and an unchanged canary, and that it ran
// no FLUSH command. It gives the number of the store's keys.
func unharmed(t *testing.T, server *testserver.Server, canary bool) (found int) {
	t.Helper()
	reply, err := server.Do("KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range reply.([]any) {
		if name == "canary" {
			continue
		}
		found++
		if !ours().MatchString(name.(string)) {
			t.Errorf("the server has a key that the store does not use: %.80q", name)
		}
	}
	if canary && server.CLI("GET", "canary") != "alive" {
		t.Errorf("the canary is %q, want \"alive\"", server.CLI("GET", "canary"))
	}
	for line := range strings.Lines(server.CLI("INFO", "commandstats")) {
		if strings.HasPrefix(line, "cmdstat_flush") {
			t.Errorf("the server ran a command that the store does not use: %s", line)
		}
	}
	return found
}

// TestHostileKeys: no key of a client reaches the count of another key, a command, a pattern or
// another slot.
func TestHostileKeys(t *testing.T) {
	all := []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog}
	t.Run("Redis", func(t *testing.T) {
		server := testserver.Start(t)
		server.CLI("SET", "canary", "alive")
		distinct(t, newStore(t, server.Addr, nil), all...)
		if n := unharmed(t, server, true); n < len(all)*len(hostileKeys()) {
			t.Errorf("the server has %d keys of the store, want at least %d", n, len(all)*len(hostileKeys()))
		}
	})
	t.Run("Redis Cluster", func(t *testing.T) {
		cluster := testserver.StartCluster(t, 3, 0)
		home := cluster.MasterOf(cluster.SlotOf("canary"))
		home.CLI("SET", "canary", "alive")
		for _, slots := range []int{0, 16} {
			distinct(t, open(t, redis.Config{
				Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Slots: slots, Timeout: patience,
			}), all...)
		}
		for _, node := range cluster.Nodes {
			if n := unharmed(t, node, node == home); n < len(hostileKeys())/2 {
				t.Errorf("%s has %d keys of the store, want at least %d", node.Addr, n, len(hostileKeys())/2)
			}
		}
	})
	t.Run("Memcached", func(t *testing.T) {
		server := memcachedserver.Start(t)
		exchange(t, server.Addr, "set canary 0 0 5\r\nalive", "STORED")
		store, err := memcached.New(memcached.Config{Servers: []string{server.Addr}, Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		distinct(t, store, headgate.TokenBucket, headgate.FixedWindow)
		if reply := exchange(t, server.Addr, "get canary", "END\r\n"); reply != "VALUE canary 0 5\r\nalive\r\nEND\r\n" {
			t.Errorf("the canary has changed: got reply %.100q", reply)
		}
		// Not "all": its walk of the recently used lists misses items that move between them meanwhile.
		dump := exchange(t, server.Addr, "lru_crawler metadump hash", "END\r\n")
		names := regexp.MustCompile(`(?m)^key=(\S+)`).FindAllStringSubmatch(dump, -1)
		for _, name := range names {
			if name[1] != "canary" && !regexp.MustCompile(`^hg3(:|%3A)[A-Za-z0-9_-]+(:|%3A|[A-Za-z0-9_-])*$`).MatchString(name[1]) {
				t.Errorf("the server has an item that the store does not use: %.80q", name[1])
			}
		}
		if want := len(hostileKeys()) + 1; len(names) != want {
			t.Errorf("the server has %d items, want %d: the canary, and one for each key with both of its windows", len(names), want)
		}
	})
}

// exchange sends lines of the protocol to a server, and reads the reply up to end.
func exchange(t *testing.T, addr, lines, end string) string {
	t.Helper()
	conn := dial(t, addr)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "%s\r\n", lines); err != nil {
		t.Fatal(err)
	}
	var reply strings.Builder
	for buffer := make([]byte, 4096); !strings.Contains(reply.String(), end); {
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("command %q: got error %v after the reply %.100q", lines, err, reply.String())
		}
		reply.Write(buffer[:n])
	}
	return reply.String()
}
