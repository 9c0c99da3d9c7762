package memcached_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/memcached"
)

// within reports whether the server answers a no-op command within d.
func within(addr string, d time.Duration) bool {
	conn, err := net.DialTimeout("tcp", addr, d)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(d))
	if _, err := io.WriteString(conn, "mn\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && line == "MN\r\n"
}

// TestStartAndStop checks that a server answers on its own port and ends with Stop.
func TestStartAndStop(t *testing.T) {
	one, other := memcached.Start(t), memcached.Start(t, "-m", "8")
	if one.Addr == other.Addr {
		t.Errorf("two servers on %s", one.Addr)
	}
	one.Stop()
	one.Stop()
	if within(one.Addr, time.Second) {
		t.Errorf("%s still answers after Stop", one.Addr)
	}
	if !within(other.Addr, 5*time.Second) {
		t.Error("the other server has ended too")
	}
}

// TestKillAndStartAgain checks that another server can start at a killed server's address.
func TestKillAndStartAgain(t *testing.T) {
	s := memcached.Start(t)
	s.Kill()
	if within(s.Addr, time.Second) {
		t.Errorf("%s still answers after Kill", s.Addr)
	}
	if next := memcached.StartAt(t, s.Addr); next.Addr != s.Addr || !within(s.Addr, 5*time.Second) {
		t.Errorf("no server answers at %s", s.Addr)
	}
}

// TestPause checks that a paused server accepts connections without an answer, and answers after
// Resume. Stop must end a paused server.
func TestPause(t *testing.T) {
	s := memcached.Start(t)
	s.Pause()
	if within(s.Addr, 100*time.Millisecond) {
		t.Error("a paused server answers")
	}
	s.Resume()
	if !within(s.Addr, 5*time.Second) {
		t.Error("a resumed server does not answer")
	}
	s.Pause()
	s.Stop()
	if within(s.Addr, 100*time.Millisecond) {
		t.Error("a stopped server answers")
	}
}

// TestMissing checks that the error for a missing program says how to install it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	caught := &fatal{TB: t}
	func() {
		defer func() { recover() }()
		memcached.Start(caught)
	}()
	if !caught.failed {
		t.Error("Start did not fail the test although memcached is not installed")
	}
}

// fatal is a testing.TB for an expected failure.
type fatal struct {
	testing.TB

	failed bool
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(string, ...any) {
	f.failed = true
	panic("the test ends here")
}
