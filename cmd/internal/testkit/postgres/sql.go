package postgres

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/internal/testkit/process"
)

// SQL runs statements with psql as the superuser, and returns the values of the rows, without the final newline. It
// fails the test when psql fails.
func (s *Server) SQL(text string) string {
	s.TB.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(s.programs, "psql"), //nolint:gosec // tests give the text
		"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", s.Dir, "-p", s.port(), "-U", User, "-d", Database, "-f", "-")
	command.Stdin = strings.NewReader(text)
	out, err := command.CombinedOutput()
	if err != nil {
		s.TB.Fatalf("psql: %v: %s", err, out)
	}
	return strings.TrimRight(string(out), "\n")
}
