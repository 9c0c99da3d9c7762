package servers

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestServers: each kind answers, uses processor time, and is gone when it was stopped.
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
				t.Errorf("it has used %v of the processor, %v", used, err)
			}
			own, err := OwnCPU()
			if err != nil || own <= 0 {
				t.Errorf("this process has used %v of the processor, %v", own, err)
			}
			s.Stop()
			if err := unix.Kill(s.cmd.Process.Pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("process %d after Stop: %v, want none", s.cmd.Process.Pid, err)
			}
			if _, err := CPUOf([]*Server{s})(); err == nil {
				t.Error("processor time of a server that is gone: got no error")
			}
		})
	}
}

// TestOrphan: a server whose benchmark is gone, which closes the pipe, is killed.
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
		t.Error("the server lives on")
	}
}

// TestCluster: every node serves its own third of the slots.
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
			t.Fatalf("SET %d: %q, %v", i, text, err)
		}
	}
}

// TestNotInstalled: the error says what to do.
func TestNotInstalled(t *testing.T) {
	if _, err := launch(t.TempDir(), "", "no-such-server"); err == nil || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("got %v, want that it is not installed", err)
	}
}
