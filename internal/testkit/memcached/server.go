package memcached

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is a running memcached.
type Server struct {
	// Addr is where it listens: 127.0.0.1 and a port of its own.
	Addr string

	pid     int
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
// server ends with the test, even one that is killed. It kills with SIGKILL, because
// a paused server heeds nothing else.
const guardian = `
memcached "$@" & server=$!
exec 3<&0 # A shell gives what it runs in the background no standard input.
(cat <&3; kill -9 "$server") >/dev/null 2>&1 & watch=$!
wait "$server"
kill "$watch" # Else it would kill, later, whoever has the number of a server that was killed.`

// Start runs a server until the test ends; args are memcached's own, such as -m 1. It
// fails the test when memcached is not installed: a test that passes because it did
// not run proves nothing.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	var problems []error
	for range attempts {
		port, err := freePort()
		if err != nil {
			tb.Fatal(err)
		}
		s, err := start(port, args)
		if err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		problems = append(problems, err)
	}
	tb.Fatalf("memcached does not start: %v", errors.Join(problems...))
	return nil
}

// StartAt is Start at a given address of loopback, such as one where a server was killed.
func StartAt(tb testing.TB, addr string, args ...string) *Server {
	tb.Helper()
	_, digits, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := start(port, args)
	if err != nil {
		tb.Fatalf("memcached does not start at %s: %v", addr, err)
	}
	tb.Cleanup(s.Stop)
	return s
}

func start(port int, args []string) (*Server, error) {
	if _, err := exec.LookPath("memcached"); err != nil {
		return nil, errors.New("memcached is not installed: run make deps, or apt-get install memcached")
	}
	who, err := user.Current() // Memcached refuses to run as root unless it is named.
	if err != nil {
		return nil, err
	}
	args = append([]string{
		"-c", guardian, "memcached", "-l", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "0", "-u", who.Username,
	}, args...)
	s := &Server{
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		process: exec.Command("sh", args...), //nolint:gosec,noctx // because tests give the words, and Stop ends it
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
			return errors.New("memcached has ended")
		case <-deadline:
			return fmt.Errorf("memcached did not answer within %v", patience)
		case <-time.After(5 * time.Millisecond):
			if s.answers() {
				return nil
			}
		}
	}
}

// answers reports whether the server answers, and remembers its process.
func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, patience) //nolint:noctx // because the time is bounded
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "STAT pid ")))
	if err != nil || pid <= 1 {
		return false
	}
	s.pid = pid
	return true
}

// Stop ends the server at once, paused or not, and waits until it has. It may be called twice.
func (s *Server) Stop() {
	s.once.Do(func() { _ = s.life.Close() })
	<-s.ended
}

// Kill ends the server as kill -9 does, and waits until it has.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGKILL)
	<-s.ended
}

// Pause stops the server's process: connections stay, are even taken by the kernel,
// and nothing answers.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.signal(tb, process.Pause)
}

// Resume lets a paused server go on.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.signal(tb, process.Resume)
}

func (s *Server) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	select {
	case <-s.ended:
		tb.Fatalf("memcached at %s has ended: %v cannot reach it", s.Addr, sig)
	default:
	}
	run, err := os.FindProcess(s.pid)
	if err == nil {
		err = run.Signal(sig)
	}
	if err != nil {
		tb.Fatalf("memcached at %s: %v: %v", s.Addr, sig, err)
	}
}
