package reference

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate/headgate/internal/testkit/process"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// startTimeout bounds the start of a process.
const startTimeout = 30 * time.Second

// programs has the paths of the two servers, and of the client of the reference.
type programs struct{ headgate, reference, client string }

// programFolder contains the built programs. TestMain removes the folder after the tests.
var programFolder string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headgate-reference-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programFolder = dir
	return m.Run()
}

// built compiles the programs once.
var built = sync.OnceValues(func() (programs, error) {
	p := programs{filepath.Join(programFolder, "headgate"), filepath.Join(programFolder, "ratelimit"), filepath.Join(programFolder, "client")}
	ours, theirs := filepath.Join("..", "..", "..", "..", "cmd", "headgate"), filepath.Join("..", "cmd", "ratelimit")
	for _, one := range [...]struct{ path, dir, name string }{
		{p.headgate, ours, "."}, {p.reference, theirs, "."}, {p.client, theirs, "github.com/envoyproxy/ratelimit/src/client_cmd"},
	} {
		command := exec.Command("go", "build", "-o", one.path, one.name)
		command.Dir, command.Env = one.dir, append(os.Environ(), "CGO_ENABLED=0")
		if text, err := command.CombinedOutput(); err != nil {
			return p, fmt.Errorf("go build %s in %s: %w\n%s", one.name, one.dir, err, text)
		}
	}
	return p, nil
})

func buildAll(t *testing.T) programs {
	t.Helper()
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// freePorts returns different ports of loopback that nothing listens on.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // Later ports differ from this one.
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if n == 1 {
		return []string{port}
	}
	return append(freePorts(t, n-1), port)
}

// start runs a program until the test ends, and connects to its gRPC port.
func start(t *testing.T, port string, words ...string) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	run, err := process.Launch(log, "env", words)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.Kill)
	connection, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	_, err = grpc_health_v1.NewHealthClient(connection).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: "ratelimit"}, grpc.WaitForReady(true))
	if err != nil {
		text, _ := os.ReadFile(log)
		t.Fatalf("the server does not answer: %v\n%s", err, text)
	}
	return ratelimitv3.NewRateLimitServiceClient(connection)
}

// mapping gives the counters of the reference one name each, with the rule as a label.
const mapping = `mappings:
  - match: ratelimit\.service\.rate_limit\.(.*)\.([a-z_]+)
    match_type: regex
    name: rule_$2
    labels: {rule: "$1"}
`

// server is a running server: its client, and the addresses of its gRPC port and its metrics.
type server struct {
	client        ratelimitv3.RateLimitServiceClient
	grpc, metrics string
}

// startReference runs the reference with the files in root/config and a Redis server of its own.
func startReference(t *testing.T, program, root string, settings ...string) server {
	t.Helper()
	return startAsReference(t, root, settings, program)
}

// startReplacement runs `headgate server` with the environment of startReference. The store_timeout is that
// of the reference, so that a busy machine changes no answer.
func startReplacement(t *testing.T, program, root string, settings ...string) server {
	t.Helper()
	own := []string{"HEADGATE_STORE_TIMEOUT=10s", "HEADGATE_ADMIN_LISTEN=off", "HEADGATE_ADMIN_HEALTH=off"}
	return startAsReference(t, root, append(own, settings...), program, "server", "--envoy-env")
}

func startAsReference(t *testing.T, root string, settings []string, words ...string) server {
	t.Helper()
	ports := freePorts(t, 4)
	mapper := filepath.Join(t.TempDir(), "mapping.yaml")
	save(t, mapper, mapping)
	environment := append([]string{
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "LOG_LEVEL=ERROR",
		"PORT=" + ports[0], "GRPC_PORT=" + ports[1], "DEBUG_PORT=" + ports[2], "PROMETHEUS_ADDR=127.0.0.1:" + ports[3],
		"USE_STATSD=false", "USE_PROMETHEUS=true", "STATS_FLUSH_INTERVAL=1s", "PROMETHEUS_MAPPER_YAML=" + mapper,
		"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=.", "RUNTIME_APPDIRECTORY=config", "RUNTIME_WATCH_ROOT=false",
		"BACKEND_TYPE=redis", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Start(t).Addr,
	}, settings...)
	client := start(t, ports[1], append(environment, words...)...)
	return server{client, "127.0.0.1:" + ports[1], "http://127.0.0.1:" + ports[3] + "/metrics"}
}

// startHeadgate runs `headgate server` with the converted files of folder and a Redis server of its own.
// The store_timeout is that of the reference, so that a busy machine changes no answer.
func startHeadgate(t *testing.T, program, folder, settings string) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	converted, err := exec.CommandContext(t.Context(), program, "convert", folder).Output()
	if err != nil {
		t.Fatalf("headgate convert: %v", err)
	}
	port := freePorts(t, 1)[0]
	config := filepath.Join(t.TempDir(), "headgate.yaml")
	save(t, config, fmt.Sprintf("%s\nstore: redis://%s\nstore_timeout: 10s\nadmin: {listen: \"off\", health: \"off\"}\n"+
		"server:\n  grpc: 127.0.0.1:%s\n  http: \"off\"\n  rate_limit_service: %s\n", converted, redis.Start(t).Addr, port, settings))
	return start(t, port, program, "server", "--config", config)
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
