package process

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CheckEnds kills a process of the calling test with SIGKILL. It checks that a running server and a paused
// server end with that process.
func CheckEnds(t *testing.T, start func() *Server) {
	t.Helper()
	if os.Getenv("TESTKIT_VICTIM") != "" {
		running, paused := start(), start()
		paused.Pause()
		fmt.Println("servers", running.Addr, paused.Addr) //nolint:forbidigo // output: the test that has started this process reads it
		select {}
	}
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec,noctx // it is this program
	// A killed test removes no folder, so its folders are within one of this test. PostgreSQL has another user.
	folder := t.TempDir()
	for _, name := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(name, 0o755); err != nil { //nolint:gosec // others may enter
			t.Fatal(err)
		}
	}
	victim.Env = append(os.Environ(), "TESTKIT_VICTIM=yes", "TMPDIR="+folder)
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill() })
	var addrs []string
	for lines := bufio.NewScanner(out); addrs == nil && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "servers" {
			addrs = words[1:]
		}
	}
	if len(addrs) != 2 || !answers(addrs[0]) || !answers(addrs[1]) {
		t.Fatalf("the servers %v do not run", addrs)
	}
	_ = victim.Process.Kill()
	_ = victim.Wait() // Wait fails for a process that was killed.
	for _, addr := range addrs {
		//nolint:forbidigo // sleep: it polls, and there is a deadline
		for deadline := time.Now().Add(Timeout); answers(addr); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s still answers", addr)
			}
		}
	}
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second) //nolint:noctx // the time is bounded
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
