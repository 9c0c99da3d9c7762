package postgres

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Kill ends the server as kill -9 does, and waits until its process has ended. Its children end a moment later by
// themselves. A second call does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	run.Kill()
}

// Restart kills the server if it runs, and starts it again on the same port with the data on its disk.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	var problems []error
	for range attempts {
		err := s.launch()
		if err == nil {
			return
		}
		problems = append(problems, err)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // sleep: the children of the killed server end
	}
	s.tb.Fatalf("PostgreSQL does not restart on %s: %v", s.Addr, errors.Join(problems...))
}

// Pause stops the server's main process: it accepts no new connection until Resume. Open connections have processes of
// their own, which go on.
func (s *Server) Pause() { s.freeze(true, process.Pause) }

// Resume continues a paused server.
func (s *Server) Resume() { s.freeze(false, process.Resume) }

func (s *Server) freeze(paused bool, signal syscall.Signal) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.run.Signal(signal); err != nil {
		s.tb.Fatalf("PostgreSQL on %s: %v: %v", s.Addr, signal, err)
	}
	s.paused = paused
	if paused {
		s.run.AwaitStop()
	}
}

// Running reports whether the server has not ended and is not paused.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.paused && s.run.Running()
}

// SQL runs statements with psql as the superuser, and returns the values of the rows, without the final newline. It
// fails the test when psql fails.
func (s *Server) SQL(text string) string {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, port, _ := net.SplitHostPort(s.Addr)
	command := exec.CommandContext(ctx, filepath.Join(s.programs, "psql"), //nolint:gosec // tests give the text
		"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-p", port, "-U", User, "-d", Database, "-f", "-")
	command.Stdin = strings.NewReader(text)
	out, err := command.CombinedOutput()
	if err != nil {
		s.tb.Fatalf("psql: %v: %s", err, out)
	}
	return strings.TrimRight(string(out), "\n")
}
