package acceptance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// redisCLI runs redis-cli against a server, and gives what it prints.
func redisCLI(t *testing.T, at string, words ...string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "redis-cli", append([]string{"--no-raw", "-p", port}, words...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", words, err, out)
	}
	return string(out)
}

// TestRedisProtocol runs the configuration and the first example of docs/redis-protocol.md. Then a reload changes
// the rules on an open connection, and a drain ends it.
func TestRedisProtocol(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "redis-protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, settings, _ := strings.Cut(string(text), "```yaml\n")
	settings, _, _ = strings.Cut(settings, "```\n")
	settings = strings.Replace(settings, "resp: 127.0.0.1:6380", "{grpc: off, http: off, resp: '127.0.0.1:0'}", 1)
	settings = strings.Replace(settings, "server:\n  {", "server: {", 1) + adminAnywhere
	path := file(t, settings)
	i := launchServer(t, path)
	_, example, _ := strings.Cut(string(text), "$ redis-cli -p 6380 CL.THROTTLE user123 15 30 60\n")
	example, _, _ = strings.Cut(example, "```")
	if got := redisCLI(t, i.RESP, "CL.THROTTLE", "user123", "15", "30", "60"); got != example {
		t.Errorf("the example prints\n%s\nwant\n%s", got, example)
	}
	for n, want := range []string{"allow", "allow", "deny"} {
		if got := redisCLI(t, i.RESP, "-3", "HG.DECIDE", "ip=192.0.2.1"); !strings.Contains(got, `"verdict" => "`+want+`"`) {
			t.Errorf("request %d: got %s, want %s", n, got, want)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Replace(settings, "[2/1m]", "[1000/1m]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new limit", func() bool { return strings.Contains(redisCLI(t, i.RESP, "-3", "HG.DECIDE", "ip=192.0.2.1"), "allow") })
	if status := i.stop(); status != 0 {
		t.Errorf("after SIGTERM the exit status is %d\n%s", status, i.text())
	}
}

// TestRedisProtocolShares: clients of several servers share one limit that they send, exactly.
func TestRedisProtocolShares(t *testing.T) {
	t.Parallel()
	settings := fmt.Sprintf("version: 1\nstore: redis://%s\nstore_timeout: 20s\nserver: {grpc: off, http: off, resp: '127.0.0.1:0'}\n"+
		"rules: []\n", testserver.Start(t).Addr) + adminAnywhere
	var allowed atomic.Int64
	var clients sync.WaitGroup
	for range 3 {
		i := launchServer(t, file(t, settings))
		clients.Go(func() {
			command := exec.CommandContext(t.Context(), "redis-cli", "-p", i.RESP[strings.LastIndexByte(i.RESP, ':')+1:], "-r", "100",
				"CL.THROTTLE", "shared", "149", "1", "86400")
			out, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("redis-cli: %v\n%s", err, out)
			}
			for n, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
				if n%5 == 0 && line == "0" { // The first of five numbers.
					allowed.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if allowed.Load() != 150 {
		t.Errorf("%d of 300 requests pass, want 150", allowed.Load())
	}
}
