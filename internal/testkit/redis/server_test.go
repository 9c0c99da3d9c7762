package redis_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestStartAndStop checks that a server answers on its own port and ends with Stop.
func TestStartAndStop(t *testing.T) {
	one, other := redis.Start(t), redis.Start(t)
	if one.Addr == other.Addr {
		t.Errorf("two servers on %s", one.Addr)
	}
	one.Stop()
	one.Stop()
	if answers(one.Addr) {
		t.Errorf("%s still answers after Stop", one.Addr)
	}
	if !answers(other.Addr) {
		t.Errorf("the other server has ended too")
	}
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// TestPause checks that a paused server accepts a request and answers it after Resume.
func TestPause(t *testing.T) {
	s := redis.Start(t)
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.Pause()
	if s.Running() {
		t.Error("Running reports true for a paused server")
	}
	fmt.Fprint(conn, "PING\r\n")
	answer := make([]byte, 7)
	conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(answer); err == nil {
		t.Fatalf("a paused server answers %q", answer[:n])
	}
	s.Resume()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(answer); err != nil || string(answer) != "+PONG\r\n" {
		t.Errorf("after Resume: %q, %v: want +PONG", answer, err)
	}
}

// TestKillAndRestart checks that a killed server refuses connections. After Restart it has the
// same port, another process, and no keys. Kill must also end a paused server.
func TestKillAndRestart(t *testing.T) {
	s := redis.Start(t)
	for _, pause := range []bool{false, true} {
		addr, pid := s.Addr, s.PID()
		s.CLI("SET", "river", "wide")
		if pause {
			s.Pause()
		}
		s.Kill()
		if answers(addr) || s.Running() {
			t.Fatalf("paused %v: the server answers after Kill", pause)
		}
		s.Restart()
		if s.Addr != addr || s.PID() == pid || !s.Running() {
			t.Errorf("paused %v: %s, process %d, after %s, %d", pause, s.Addr, s.PID(), addr, pid)
		}
		if got := s.CLI("GET", "river"); got != "" {
			t.Errorf("paused %v: the key still exists: %q", pause, got)
		}
	}
}

// TestDo checks that replies keep all their bytes, and that refusals are errors.
func TestDo(t *testing.T) {
	s := redis.Start(t, "--maxmemory", "7mb")
	if got := s.CLI("CONFIG", "GET", "maxmemory"); got != "maxmemory\n7340032" {
		t.Errorf("the setting has no effect: %q", got)
	}
	key := "a\r\n\x00*\"'"
	if _, err := s.Do("RPUSH", key, "", "\xff\n"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Do("LRANGE", key, "0", "-1")
	if list, ok := got.([]any); err != nil || !ok || !slices.Equal(list, []any{"", "\xff\n"}) {
		t.Errorf("LRANGE returns %q, %v", got, err)
	}
	if got, err := s.Do("GET", "nothing"); got != nil || err != nil {
		t.Errorf("a missing key returns %v, %v: want nil", got, err)
	}
	if got, err := s.Do("LLEN", key); got != int64(2) || err != nil {
		t.Errorf("LLEN returns %v, %v: want 2", got, err)
	}
	if _, err := s.Do("GET", key); !errors.Is(err, redis.ErrReply) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("GET of a list returns %v: want WRONGTYPE", err)
	}
	if v := s.Version(); !strings.Contains(v, ".") {
		t.Errorf("version %q", v)
	}
}

// TestCPU checks that the work of the server is visible in CPU.
func TestCPU(t *testing.T) {
	s := redis.Start(t)
	before := s.CPU()
	s.CLI("EVAL", "local n = 0; for i = 1, 5000000 do n = n + i end; return n", "0")
	if spent := s.CPU() - before; spent < 5*time.Millisecond || spent > 10*time.Second {
		t.Errorf("five million additions took %v of processor time", spent)
	}
}
