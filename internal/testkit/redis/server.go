package redis

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running redis-server that keeps nothing on disk.
type Server struct {
	// Addr is where it listens: 127.0.0.1 and a port of its own.
	Addr string

	process *exec.Cmd
	life    io.Closer
	output  bytes.Buffer // To be read when ended is closed.
	ended   chan struct{}
	once    sync.Once
}

// attempts: another program may take the free port before the server does.
const attempts = 5

// patience is how long a server may take to answer.
const patience = 10 * time.Second

// guardian runs the server for as long as its own standard input is open. So the
// server ends with the test, even one that is killed.
const guardian = `
redis-server "$@" & server=$!
exec 3<&0 # A shell gives what it runs in the background no standard input.
(cat <&3; kill "$server") >/dev/null 2>&1 &
wait "$server"`

// Start runs a server until the test ends. It fails the test when redis-server
// is not installed: a test that passes because it did not run proves nothing.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		tb.Fatal("redis-server is not installed: run make deps, or apt-get install redis-server")
	}
	var problems []error
	for range attempts {
		s, err := start(tb.TempDir(), settings)
		if err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		problems = append(problems, err)
	}
	tb.Fatalf("redis-server does not start: %v", errors.Join(problems...))
	return nil
}

func start(dir string, settings []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{
		"-c", guardian, "redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--dir", dir, "--save", "", "--appendonly", "no",
	}
	s := &Server{
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		process: exec.Command("sh", append(args, settings...)...), //nolint:gosec,noctx // because tests give the words, and Stop ends it
		ended:   make(chan struct{}),
	}
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	if s.life, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.process.Wait() // A server that is stopped by a signal ends with a failure.
		close(s.ended)
	}()
	if err := s.await(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w; it said:\n%s", err, s.output.String())
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // because it ends at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("%v is no TCP address", l.Addr())
	}
	return addr.Port, nil
}

// await waits until the server answers, and until it is ours that answers: its
// process still runs.
func (s *Server) await() error {
	deadline := time.After(patience)
	for {
		select {
		case <-s.ended:
			return errors.New("redis-server has ended")
		case <-deadline:
			return fmt.Errorf("redis-server did not answer within %v", patience)
		case <-time.After(5 * time.Millisecond):
			if s.answers() {
				return nil
			}
		}
	}
}

func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, patience) //nolint:noctx // because the time is bounded
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "+PONG")
}

// Stop ends the server at once, and waits until it has. It may be called twice.
func (s *Server) Stop() {
	s.once.Do(func() { _ = s.life.Close() })
	<-s.ended
}
