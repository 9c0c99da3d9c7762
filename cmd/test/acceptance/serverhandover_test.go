package acceptance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// inheritServer starts headgate server as systemd does for a socket unit: see inherit.
func inheritServer(t *testing.T, path string, socket *os.File) *instance {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" server --config "$1"`, binary, path)
	command.ExtraFiles = []*os.File{socket}
	return serve(t, path, command)
}

// inheritable opens a listener, whose socket processes can inherit.
func inheritable(t *testing.T) (at string, socket *os.File) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if socket, err = ln.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ln.Close(), socket.Close() })
	return ln.Addr().String(), socket
}

// TestServerHandOver restarts the server under load. The socket stays open, and the new process serves it
// before the old one gets SIGTERM. No call fails, and the counts in Redis are exact.
func TestServerHandOver(t *testing.T) {
	t.Parallel()
	handOver(t, 3, 100*time.Millisecond)
}

// handOver restarts the server some times, with a pause before each restart.
func handOver(t *testing.T, restarts int, pause time.Duration) {
	t.Helper()
	at, socket := inheritable(t)
	path := file(t, fmt.Sprintf(`version: 1
store: redis://%s
store_timeout: 5s
rules: []
server: {grpc: systemd, http: "off"}
domains:
  shop: {descriptors: [{key: user, limits: %d/365d}]}
`+adminAnywhere, testserver.Start(t).Addr, uncounted))
	load := serverLoad{connections: 8, workers: 16, retries: 1, pause: time.Millisecond, request: userOf}
	all := load.throughRestarts(t, at, path, socket, restarts, pause)
	load.countedOnce(t, rateLimitClient(t, at), all)
}

// throughRestarts calls while processes take over from one another.
func (l serverLoad) throughRestarts(t *testing.T, at, path string, socket *os.File, restarts int, pause time.Duration) []serverCall {
	t.Helper()
	now := inheritServer(t, path, socket)
	all := l.run(t, at, func() {
		for range restarts {
			<-time.After(pause)
			next := inheritServer(t, path, socket)
			if err := now.command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
				return
			}
			<-now.ended
			if status := exitStatus(now.status); status != 0 {
				t.Errorf("the old process ends with %d\n%s", status, now.text())
			}
			now = next
		}
		<-time.After(pause)
	})
	repeated := succeed(t, all)
	t.Logf("%d calls through %d restarts, %d repeated; 99%% within %v, all within %v", len(all), restarts, repeated, slowest(all, 99), slowest(all, 100))
	return all
}

// countedOnce checks that the store has each call, and at most each attempt.
func (l serverLoad) countedOnce(t *testing.T, client ratelimitv3.RateLimitServiceClient, all []serverCall) {
	t.Helper()
	calls := map[int]int{}
	attempts := map[int]int{}
	for _, c := range all {
		calls[c.worker]++
		attempts[c.worker] += c.attempts
	}
	for worker := range l.workers {
		// The store may also have the hit of an attempt that failed.
		if n := hitsOf(t, client, fmt.Sprint("worker-", worker)); n < calls[worker] || n > attempts[worker] {
			t.Errorf("%d hits of worker %d are counted, want %d, or %d with all repeated ones", n, worker, calls[worker], attempts[worker])
		}
	}
}
