package redis

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Server is a redis-server that keeps nothing on disk. Its methods may be called
// from several goroutines; those that can fail the test only from the test's own.
type Server struct {
	// Addr is where it listens: 127.0.0.1 and a port of its own.
	Addr string

	tb     testing.TB
	port   int
	dir    string
	words  []string // What redis-server is started with.
	access access

	mu     sync.Mutex // Guards the two below.
	run    *process.Process
	paused bool
}

// attempts: another program may take the free port before the server does.
const attempts = 5

// patience is how long a server may take to answer.
const patience = 10 * time.Second

// Start runs a server until the test ends. Settings are redis-server's own, as
// words: "--maxmemory", "1mb". It fails the test when redis-server is not
// installed: a test that passes because it did not run proves nothing.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return start(tb, access{}, func(dir string, port int) []string {
		return append(common(dir, "--port", strconv.Itoa(port)), settings...)
	})
}

// common is what all servers but sentinels are started with, and words.
func common(dir string, words ...string) []string {
	return append([]string{
		"--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", // Five seconds in which a new replica has nothing, else.
	}, words...)
}

// layout gives the words that redis-server is started with in a folder, on a port.
type layout func(dir string, port int) []string

// start runs a server in a folder of its own, on a free port.
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
	s.words = words(s.dir, port)
	err = s.launch()
	return s, err
}

// launch runs the server, and returns when it answers.
func (s *Server) launch() error {
	run, err := process.Launch(s.logFile(), "redis-server", s.words)
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
		return fmt.Errorf("%w; it said:\n%s", err, s.Log())
	}
	return nil
}

// await waits until the server answers, and until it is ours that answers: the
// process that it names is the one that we started.
func (s *Server) await(run *process.Process) error {
	deadline := time.Now().Add(patience)
	for {
		info, err := s.access.ask(s.Addr, patience, "INFO", "server")
		if text, ok := info.(string); ok && fields(text)["process_id"] == strconv.Itoa(run.PID()) {
			return nil
		}
		select {
		case <-run.Ended():
			return errors.New("redis-server has ended")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server did not answer within %v: %w", patience, err)
		}
	}
}

// current gives the run that was started last.
func (s *Server) current() (run *process.Process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, s.paused
}

// Running tells whether the server can answer: it was not stopped, killed or paused.
func (s *Server) Running() bool {
	run, paused := s.current()
	return !paused && run.Running()
}

// Port is the one in Addr.
func (s *Server) Port() int { return s.port }

// PID is the number of the server's process, the last one's if it has ended.
func (s *Server) PID() int {
	run, _ := s.current()
	return run.PID()
}
