package postgres

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// StartReplica runs a hot standby of a server until the test ends. It follows the server as it does by default: after a commit, by
// asynchronous replication.
func StartReplica(tb testing.TB, primary *Server) *Server {
	tb.Helper()
	s := newServer(tb, primary.programs, primary.Password)
	s.program("pg_basebackup", "-D", s.data(), "-d", "host="+primary.Dir+" port="+primary.port()+" user="+User, "-R", "-X", "stream",
		"-c", "fast", "--no-sync")
	s.words = []string{
		"-D", s.data(), "-k", s.Dir, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "shared_buffers=32MB",
		"-c", "logging_collector=off", "-c", "log_min_messages=warning",
	}
	return s.launchAnywhere("PostgreSQL does not start as a replica")
}

// Promote makes a replica a primary, and returns when it takes writes.
func (s *Server) Promote() {
	s.TB.Helper()
	s.program("pg_ctl", "promote", "-D", s.data(), "-w")
}

// program runs a program of PostgreSQL.
func (s *Server) program(name string, words ...string) {
	s.TB.Helper()
	// A second on an idle machine; above a minute was seen beside four busy loops.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	words = as(filepath.Join(s.programs, name), words...)
	command := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the words are ours
	command.Dir = s.Dir
	if out, err := command.CombinedOutput(); err != nil {
		s.TB.Fatalf("%s: %v: %s", name, err, out)
	}
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}
