package redis_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestNothingOutlivesTheTest kills a test process with SIGKILL. It checks that a running
// server and a paused server end with that process.
func TestNothingOutlivesTheTest(t *testing.T) {
	if os.Getenv("TESTKIT_VICTIM") != "" {
		running, paused := redis.Start(t), redis.Start(t)
		paused.Pause()
		fmt.Println("servers", running.Addr, paused.Addr)
		select {}
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestNothingOutlivesTheTest$")
	victim.Env = append(os.Environ(), "TESTKIT_VICTIM=yes")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill() })
	var addrs []string
	for lines := bufio.NewScanner(out); addrs == nil && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "servers" {
			addrs = words[1:]
		}
	}
	if len(addrs) != 2 || !answers(addrs[0]) || !answers(addrs[1]) {
		t.Fatalf("the servers %v do not run", addrs)
	}
	victim.Process.Kill()
	victim.Wait()
	for _, addr := range addrs {
		for deadline := time.Now().Add(10 * time.Second); answers(addr); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // sleep: it polls, and there is a deadline
			if time.Now().After(deadline) {
				t.Fatalf("%s still answers", addr)
			}
		}
	}
}
