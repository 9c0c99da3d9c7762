package etcd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/headgate/headgate/internal/testkit/process"
)

// CTL runs etcdctl against the server and returns its output without the final newline. It
// fails the test when etcdctl fails.
func (s *Server) CTL(words ...string) string {
	s.TB.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Timeout)
	defer cancel()
	words = append([]string{"--endpoints", s.Addr}, words...)
	command := exec.CommandContext(ctx, "etcdctl", words...) //nolint:gosec // tests give the words
	command.Env = append(os.Environ(), "ETCDCTL_API=3")
	out, err := command.CombinedOutput()
	if err != nil {
		s.TB.Fatal(fmt.Errorf("etcdctl %s: %w: %s", strings.Join(words, " "), err, out))
	}
	return strings.TrimRight(string(out), "\n")
}
