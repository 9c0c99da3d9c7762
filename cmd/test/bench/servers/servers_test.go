package servers

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestServers checks that each server responds, uses processor time, and ends in Stop.
func TestServers(t *testing.T) {
	for name, start := range map[string]func() (*Server, error){
		"redis":     func() (*Server, error) { return Redis(t.Context(), t.TempDir()) },
		"memcached": func() (*Server, error) { return Memcached(t.Context(), t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := start()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			if used, err := s.CPU(); err != nil || used <= 0 {
				t.Errorf("processor time of the server: got %v, error %v, want more than 0", used, err)
			}
			own, err := OwnCPU()
			if err != nil || own <= 0 {
				t.Errorf("processor time of this process: got %v, error %v, want more than 0", own, err)
			}
			s.Stop()
			if err := unix.Kill(s.cmd.Process.Pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("signal to process %d after Stop: got %v, want no such process", s.cmd.Process.Pid, err)
			}
			if _, err := CPUOf([]*Server{s})(); err == nil {
				t.Error("processor time of a stopped server: got no error")
			}
		})
	}
}

// TestForeignServer: the answer of another server on the port is not taken for that of ours.
func TestForeignServer(t *testing.T) {
	other, err := Redis(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Stop()
	_, port, _ := strings.Cut(other.Addr, ":")
	dir := t.TempDir()
	ours, err := launch(dir, other.Addr, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Stop()
	if err := ours.await(t.Context(), "PING\r\n", "+PONG"); !errors.Is(err, errEnded) {
		t.Errorf("got %v, want %v", err, errEnded)
	}
	if !other.owns() || ours.owns() {
		t.Errorf("the first server owns its port: %v, and the second: %v", other.owns(), ours.owns())
	}
}

// TestOrphan checks that a server is killed when its benchmark ends without Stop.
func TestOrphan(t *testing.T) {
	s, err := Redis(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	_ = s.life.Close()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Error("the server still runs after its pipe was closed, want it killed")
	}
}

// TestCluster checks that the nodes together serve all slots.
func TestCluster(t *testing.T) {
	nodes, err := Cluster(t.Context(), t.TempDir(), 3)
	for _, node := range nodes {
		t.Cleanup(node.Stop)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		_, port, _ := strings.Cut(nodes[0].Addr, ":")
		text, err := cli(t.Context(), "-c", "-p", port, "SET", strconv.Itoa(i), "x")
		if err != nil || string(text) != "OK\n" {
			t.Fatalf("SET %d: got %q, error %v, want OK", i, text, err)
		}
	}
}

// TestNotInstalled checks that the error names the command that installs the server.
func TestNotInstalled(t *testing.T) {
	if _, err := launch(t.TempDir(), "", "no-such-server"); err == nil || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("program that is not installed: got error %v, want an error with make deps", err)
	}
}
