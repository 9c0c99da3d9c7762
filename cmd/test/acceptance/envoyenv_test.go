package acceptance

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// envoyFolder makes a folder with one file of envoyproxy/ratelimit.
func envoyFolder(t *testing.T, text string) (root, path string) {
	t.Helper()
	root = t.TempDir()
	path = filepath.Join(root, "config", "shop.yaml")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return root, path
}

// asked posts one hit of a client, and gives the status.
func (i *instance) asked(client string) int {
	i.t.Helper()
	answer, err := http.Post("http://"+i.HTTP+"/json", "application/json", strings.NewReader(
		`{"domain":"shop","descriptors":[{"entries":[{"key":"client","value":"`+client+`"}]}]}`))
	if err != nil {
		i.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// listener gives the address that the log names.
func (i *instance) listener(name string) string {
	for _, line := range i.lines() {
		var one struct {
			Message  string `json:"msg"`
			Listener string `json:"listener"`
			Address  string `json:"address"`
		}
		if json.Unmarshal([]byte(line.text), &one) == nil && one.Message == "serving counters" && one.Listener == name {
			return one.Address
		}
	}
	return ""
}

const (
	shopTwice  = "domain: shop\ndescriptors:\n  - {key: client, rate_limit: {unit: year, requests_per_unit: 2}}\n"
	shopThrice = "domain: shop\ndescriptors:\n  - {key: client, rate_limit: {unit: year, requests_per_unit: 3}}\n"
)

// TestRatelimit runs the binary under the name ratelimit, with the variables and the files of
// envoyproxy/ratelimit, on a real Redis.
func TestRatelimit(t *testing.T) {
	t.Parallel()
	server := redis.Start(t)
	root, path := envoyFolder(t, "domain: shop\ndescriptors:\n  - {key: client, rate_limit: {unit: eon, requests_per_unit: 2}}\n")
	name := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(binary, name); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(name)
	command.Env = append(os.Environ(), "HEADGATE_STORE_TIMEOUT=10s", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=127.0.0.1:"+strconv.Itoa(server.Port()), "RUNTIME_ROOT="+root, "RUNTIME_WATCH_ROOT=false",
		"HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "USE_STATSD=false",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "LOG_LEVEL=INFO", "LOG_FORMAT=json", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true",
		"REDIS_POOL_SIZE=10", "HEADGATE_ADMIN_LISTEN=127.0.0.1:0", "HEADGATE_ADMIN_HEALTH=127.0.0.1:0")
	i := serve(t, "", command)
	if got := i.asked("a"); got != http.StatusServiceUnavailable {
		t.Errorf("with a faulty file, a call gets %d, want 503", got)
	}
	if got, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck"); got != http.StatusInternalServerError {
		t.Errorf("with a faulty file, healthcheck answers %d, want 500", got)
	}
	if !strings.Contains(i.text(), "shop.yaml:3") || !strings.Contains(i.text(), "REDIS_POOL_SIZE") {
		t.Errorf("the log has no place of the fault, or no variable without effect\n%s", i.text())
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(shopTwice)
	eventually(t, "the repaired file", func() bool { got, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck"); return got == http.StatusOK })
	for n, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := i.asked("b"); got != want {
			t.Errorf("hit %d of 2 gets %d, want %d", n+1, got, want)
		}
	}
	put(shopThrice)
	eventually(t, "the changed limit", func() bool {
		_, text := pageOf(t, "http://"+i.listener("debug")+"/rlconfig")
		return text == "shop.client: unit=YEAR requests_per_unit=3, shadow_mode: false, quota_mode: false\n"
	})
	if got := i.asked("b"); got != http.StatusTooManyRequests {
		t.Errorf("the counted hits were forgotten: status %d", got)
	}
	_, metrics := pageOf(t, "http://"+i.listener("prometheus")+"/metrics")
	if !strings.Contains(metrics, `ratelimit_service_rate_limit_over_limit{domain="shop",key1="client"} 2`) {
		t.Errorf("the metrics lack the hits over the limit\n%s", metrics)
	}
	if status := i.stop(); status != 0 {
		t.Errorf("after SIGTERM the exit status is %d\n%s", status, i.text())
	}
}

// TestRedisPerSecond runs on two Redis servers, one of them on a unix socket, the default of REDIS_SOCKET_TYPE.
// A limit per SECOND counts on the second server, and all others count on the first.
func TestRedisPerSecond(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	main, second := redis.Start(t, "--unixsocket", socket), redis.Start(t)
	root, _ := envoyFolder(t, "domain: shop\ndescriptors:\n  - {key: client, value: often, rate_limit: {unit: second, requests_per_unit: 1000000}}\n"+
		"  - {key: client, rate_limit: {unit: year, requests_per_unit: 2}}\n")
	command := exec.Command(binary, "server", "--envoy-env")
	command.Env = append(os.Environ(), "HEADGATE_STORE_TIMEOUT=10s", "REDIS_URL="+socket, "REDIS_PERSECOND=true", "REDIS_PERSECOND_SOCKET_TYPE=tcp",
		"REDIS_PERSECOND_URL="+second.Addr, "RUNTIME_ROOT="+root, "RUNTIME_WATCH_ROOT=false", "HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1",
		"GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "USE_STATSD=false", "LOG_LEVEL=INFO", "LOG_FORMAT=json",
		"HEADGATE_ADMIN_LISTEN=127.0.0.1:0", "HEADGATE_ADMIN_HEALTH=127.0.0.1:0")
	i := serve(t, "", command)
	eventually(t, "both stores", func() bool { got, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck"); return got == http.StatusOK })
	scripts := func(s *redis.Server) int { return strings.Count(s.CLI("INFO", "commandstats"), "cmdstat_eval") }
	if got := i.asked("often"); got != http.StatusOK || scripts(second) == 0 || scripts(main) != 0 {
		t.Errorf("a limit per second: status %d, %d kinds of scripts on its server and %d on the other", got, scripts(second), scripts(main))
	}
	for n, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := i.asked("seldom"); got != want {
			t.Errorf("hit %d of 2 a year gets %d, want %d", n+1, got, want)
		}
	}
	if scripts(main) == 0 {
		t.Error("a limit per year did not count on its server")
	}
}

// TestEnvoyConfig serves a folder of files beside a configuration.
func TestEnvoyConfig(t *testing.T) {
	t.Parallel()
	root, path := envoyFolder(t, shopTwice)
	i := serve(t, "", exec.Command(binary, "server", "--config", file(t, decisionService), "--envoy-config", root))
	if got := i.asked("a"); got != http.StatusOK {
		t.Errorf("the first hit gets %d", got)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(shopTwice, ": 2", ": 0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the limit 0", func() bool { return i.asked("c") == http.StatusTooManyRequests })
}

// TestEnvoyEnvTakesNoFile: flags that --envoy-env would not follow are refused.
func TestEnvoyEnvTakesNoFile(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--config": "reads no configuration file", "--envoy-config": "reads RUNTIME_ROOT"} {
		text, _ := exec.Command(binary, "server", "--envoy-env", flag, "other").CombinedOutput()
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: got %s, want %s", flag, text, want)
		}
	}
}

// TestEnvoyVariablesAreChecked: a bad variable ends with status 2 and its name.
func TestEnvoyVariablesAreChecked(t *testing.T) {
	t.Parallel()
	for variables, want := range map[string]string{
		"PORT=many":            `PORT "many": use a whole number`,
		"REDIS_URL=redis:6379": "REDIS_URL: with REDIS_SOCKET_TYPE=unix, the default, use the path of a socket, or set REDIS_SOCKET_TYPE=tcp",
	} {
		command := exec.Command(binary, "server", "--envoy-env")
		command.Env = append(os.Environ(), variables)
		text, _ := command.CombinedOutput()
		if command.ProcessState.ExitCode() != 2 || !strings.Contains(string(text), want) {
			t.Errorf("%s: status %d\n%s", variables, command.ProcessState.ExitCode(), text)
		}
	}
}
