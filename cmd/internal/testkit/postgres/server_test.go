package postgres_test

import (
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/postgres"
)

// TestServer checks that a server keeps its data and its port over a kill, and ends.
func TestServer(t *testing.T) {
	t.Parallel()
	s := postgres.Start(t, "max_connections=20")
	if got := s.SQL("CREATE TABLE river (name text); INSERT INTO river VALUES ('wide'); SHOW max_connections; SELECT name FROM river"); got != "20\nwide" {
		t.Errorf("psql gives %q", got)
	}
	addr := s.Addr
	s.Pause()
	if s.Running() {
		t.Error("a paused server counts as running")
	}
	s.Resume()
	s.Restart()
	if got := s.SQL("SELECT name FROM river"); got != "wide" || s.Addr != addr {
		t.Errorf("after the restart on %s, psql gives %q", s.Addr, got)
	}
	s.Kill()
	s.Kill()
	if conn, err := net.DialTimeout("tcp", s.Addr, time.Second); err == nil {
		conn.Close()
		t.Error("the server answers after Kill")
	}
}
