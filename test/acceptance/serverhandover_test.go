package acceptance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// inheritServer starts headgate server as systemd does for a socket unit: see inherit.
func inheritServer(t *testing.T, path string, socket *os.File) *instance {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=grpc exec "$0" server --config "$1"`, binary, path)
	command.ExtraFiles = []*os.File{socket}
	return serve(t, path, command)
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
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	path := file(t, fmt.Sprintf(`version: 1
store: redis://%s
store_timeout: 5s
rules: []
server: {grpc: systemd, http: "off"}
domains:
  shop: {descriptors: [{key: user, limits: %d/365d}]}
`+adminAnywhere, testserver.Start(t).Addr, uncounted))
	now := inheritServer(t, path, socket)
	load := serverLoad{connections: 8, workers: 16, retries: 1, pause: time.Millisecond, request: userOf}
	all := load.run(t, ln.Addr().String(), func() {
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
	calls := map[int]int{}
	attempts := map[int]int{}
	for _, c := range all {
		calls[c.worker]++
		attempts[c.worker] += c.attempts
	}
	client := rateLimitClient(t, ln.Addr().String())
	for worker := range load.workers {
		// The store may also have the hit of an attempt that failed.
		if n := hitsOf(t, client, fmt.Sprint("worker-", worker)); n < calls[worker] || n > attempts[worker] {
			t.Errorf("%d hits of worker %d are counted, want %d, or %d with all repeated ones", n, worker, calls[worker], attempts[worker])
		}
	}
}
