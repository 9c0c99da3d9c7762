package acceptance

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestLocalCache floods one key over its limit: with LOCAL_CACHE_SIZE_IN_BYTES, Redis decides until it
// refuses, and sees no more.
func TestLocalCache(t *testing.T) {
	t.Parallel()
	server := redis.Start(t)
	root, _ := envoyFolder(t, shopTwice)
	command := exec.Command(binary, "server", "--envoy-env")
	command.Env = append(os.Environ(), "HEADGATE_STORE_TIMEOUT=10s", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+server.Addr, "LOCAL_CACHE_SIZE_IN_BYTES=1048576",
		"RUNTIME_ROOT="+root, "RUNTIME_WATCH_ROOT=false", "HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0",
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "USE_STATSD=false", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0",
		"LOG_LEVEL=INFO", "LOG_FORMAT=json", "HEADGATE_ADMIN_LISTEN=127.0.0.1:0", "HEADGATE_ADMIN_HEALTH=127.0.0.1:0")
	i := serve(t, "", command)
	eventually(t, "the store", func() bool { got, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck"); return got == http.StatusOK })
	// Once a second, the instance looks for bans of other instances, under a key of their own.
	eventually(t, "the key of bans", func() bool { return server.CLI("DBSIZE") == "1" })
	bans := server.CLI("KEYS", "*")
	server.CLI("CONFIG", "SET", "slowlog-max-len", "10000")
	server.CLI("CONFIG", "SET", "slowlog-log-slower-than", "0")
	for n, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := i.asked("b"); got != want {
			t.Fatalf("hit %d of 2 gets %d, want %d", n+1, got, want)
		}
	}
	keys := strings.Fields(strings.ReplaceAll(server.CLI("KEYS", "*"), bans, ""))
	if len(keys) != 1 {
		t.Fatalf("the client has the keys %q, want one", keys)
	}
	before := commandsOn(server, keys[0])
	for range 100 {
		if got := i.asked("b"); got != http.StatusTooManyRequests {
			t.Fatalf("a hit over the limit gets %d", got)
		}
	}
	if commands := commandsOn(server, keys[0]); before < 3 || commands != before {
		t.Errorf("Redis ran %d commands for 3 hits of a key, and %d more for 100 hits over its limit, want none", before, commands-before)
	}
	if got := i.asked("c"); got != http.StatusOK {
		t.Errorf("another key gets %d", got)
	}
	if status, table, _ := call(t, "ctl", "status", "--admin", i.Admin); status != 0 || !strings.Contains(table, "\nDOMAIN  LIMITS  FALLBACK\nshop    1       error\n") {
		t.Errorf("ctl status has status %d and prints\n%s", status, table)
	}
	_, metrics := pageOf(t, "http://"+i.listener("prometheus")+"/metrics")
	for _, line := range []string{
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="client"} 101`,
		`ratelimit_service_rate_limit_shop_client_over_limit_with_local_cache 100`,
		`ratelimit_localcache_hitCount 100`, `ratelimit_localcache_missCount 4`, `ratelimit_localcache_entryCount 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// commandsOn counts the commands that a server has run on a key, those of scripts included, since its log of commands began.
func commandsOn(s *redis.Server, key string) (n int) {
	for line := range strings.Lines(s.CLI("SLOWLOG", "GET", "10000")) {
		if strings.TrimSpace(line) == key {
			n++
		}
	}
	return n
}
