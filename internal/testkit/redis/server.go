package redis

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is a redis-server without persistence. Its methods are safe for concurrent use. Methods
// that can fail the test must be called from the test's goroutine.
type Server struct {
	// Addr is the server's address: 127.0.0.1 and its own port.
	Addr string

	tb     testing.TB
	port   int
	dir    string
	words  []string // The command line of redis-server.
	env    []string // More variables of its environment.
	access access

	mu     sync.Mutex // Guards the fields below.
	run    *process.Process
	paused bool
}

// attempts bounds the starts, because another program may take a free port first.
const attempts = 5

// startTimeout bounds the time until a server answers.
const startTimeout = 10 * time.Second

// Start runs a server until the test ends. Settings are flags of redis-server, like
// "--maxmemory", "1mb". Start fails the test when redis-server is not installed: a test that is
// skipped proves nothing.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return start(tb, access{}, func(dir string, port int) []string {
		return append(common(dir, "--port", strconv.Itoa(port)), settings...)
	})
}

// common returns the flags of every server except sentinels, followed by words.
func common(dir string, words ...string) []string {
	return append([]string{
		"--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", // By default a new replica has no data for five seconds.
	}, words...)
}

// layout returns the command line of redis-server for a folder and a port.
type layout func(dir string, port int) []string

// start runs a server in its own folder, on a free port.
func start(tb testing.TB, a access, words layout) *Server {
	tb.Helper()
	for _, program := range []string{"redis-server", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			tb.Fatalf("%s is not installed: run make deps, or apt-get install redis-server", program)
		}
	}
	var problems []error
	for range attempts {
		s, err := tryStart(tb, a, words)
		if err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		problems = append(problems, err)
	}
	tb.Fatalf("redis-server does not start: %v", errors.Join(problems...))
	return nil
}

func tryStart(tb testing.TB, a access, words layout) (*Server, error) {
	tb.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: loopback(port), tb: tb, port: port, dir: tb.TempDir(), access: a}
	s.words, s.env = words(s.dir, port), a.env
	err = s.launch()
	return s, err
}

// launch runs the server and returns when it answers.
func (s *Server) launch() error {
	program, words := "redis-server", s.words
	if len(s.env) > 0 {
		program, words = "env", slices.Concat(s.env, []string{program}, s.words)
	}
	run, err := process.Launch(s.logFile(), program, words)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.run, s.paused = run, false
	s.mu.Unlock()
	err = s.await(run)
	if err == nil && s.access.prepare != nil {
		err = s.access.prepare(s.access, s.Addr)
	}
	if err != nil {
		run.Kill()
		return fmt.Errorf("%w; its output:\n%s", err, s.Log())
	}
	return nil
}

// await waits until the server answers. It checks the process number in the answer, because
// another server might listen on the port.
func (s *Server) await(run *process.Process) error {
	deadline := time.Now().Add(startTimeout)
	for {
		info, err := s.access.call(s.Addr, startTimeout, "INFO", "server")
		if text, ok := info.(string); ok && fields(text)["process_id"] == strconv.Itoa(run.PID()) {
			return nil
		}
		select {
		case <-run.Ended():
			return errors.New("redis-server has ended")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server did not answer within %v: %w", startTimeout, err)
		}
	}
}

// current returns the last started process.
func (s *Server) current() (run *process.Process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, s.paused
}

// Running reports whether the server can answer: it has not ended and is not paused.
func (s *Server) Running() bool {
	run, paused := s.current()
	return !paused && run.Running()
}

// Port returns the port of Addr.
func (s *Server) Port() int { return s.port }

// PID returns the process number of the last run.
func (s *Server) PID() int {
	run, _ := s.current()
	return run.PID()
}
