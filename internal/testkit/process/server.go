package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Timeout bounds the time until a server answers.
const Timeout = 20 * time.Second

// attempts bounds the starts, because another program may take a free port first, and because a
// killed server's children hold its port and its memory for a moment.
const attempts = 20

// Server is a server on loopback. The package of a kind of server embeds it, and sets its exported
// fields before Launch. Its methods are safe for concurrent use. Methods that can fail the test must be
// called from the test's goroutine.
type Server struct {
	// Addr is the address for clients: 127.0.0.1 and the server's own port.
	Addr string
	// TB is the test that uses the server.
	TB testing.TB
	// Name is the server's name in errors.
	Name string
	// Dir is the server's own folder, which also gets its log.
	Dir string
	// Command is the command line.
	Command []string
	// Ready returns nil if the process with this number answers. Another server may listen on the port.
	Ready func(pid int) error

	mu     sync.Mutex // Guards the fields below.
	run    *Process
	paused bool
}

// Require fails the test if a program is not installed: a test that is skipped proves nothing.
// packages are the packages of Debian that have the programs.
func Require(tb testing.TB, packages string, programs ...string) {
	tb.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			tb.Fatalf("%s is not installed: run make deps, or apt-get install %s", program, packages)
		}
	}
}

// Retry calls start until it succeeds. It fails the test after 20 attempts.
func Retry[S any](tb testing.TB, failure string, start func() (S, error)) S {
	tb.Helper()
	var problems []error
	for range attempts {
		s, err := start()
		if err == nil {
			return s
		}
		problems = append(problems, err)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // sleep: another program may release the port
	}
	tb.Fatalf("%s: %v", failure, errors.Join(problems...))
	var none S
	return none
}

// Launch runs the server and returns when it answers. The server ends with the test.
func (s *Server) Launch() error {
	run, err := Launch(s.logFile(), s.Command[0], s.Command[1:])
	if err != nil {
		return err
	}
	s.TB.Cleanup(run.Kill)
	s.mu.Lock()
	s.run, s.paused = run, false
	s.mu.Unlock()
	if err := s.await(run); err != nil {
		run.Kill()
		return fmt.Errorf("%w; its output:\n%s", err, s.Log())
	}
	return nil
}

func (s *Server) await(run *Process) error {
	deadline := time.Now().Add(Timeout)
	for {
		err := s.Ready(run.PID())
		if err == nil {
			return nil
		}
		select {
		case <-run.Ended():
			return fmt.Errorf("%s has ended", s.Name)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not answer within %v: %w", s.Name, Timeout, err)
		}
	}
}

// current returns the last started process.
func (s *Server) current() (run *Process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, s.paused
}

// Running reports whether the server can answer: it has not ended and is not paused.
func (s *Server) Running() bool {
	run, paused := s.current()
	return !paused && run.Running()
}

// PID returns the process number of the last run.
func (s *Server) PID() int {
	run, _ := s.current()
	return run.PID()
}

func (s *Server) logFile() string { return filepath.Join(s.Dir, "log") }

// Log returns the output of all runs of the server.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop kills the server and waits until it has ended. A second call does nothing.
func (s *Server) Stop() { s.Kill() }

// Kill ends the server as kill -9 does, and waits until its process has ended. The server saves no
// data, and its connections are reset. A second call does nothing.
func (s *Server) Kill() {
	run, _ := s.current()
	run.Kill()
}

// Restart kills the server if it runs, and starts it again on the same port, with the data on its disk.
func (s *Server) Restart() {
	s.TB.Helper()
	s.Kill()
	Retry(s.TB, fmt.Sprintf("%s does not restart on %s", s.Name, s.Addr), func() (struct{}, error) { return struct{}{}, s.Launch() })
}

// Pause stops the server's process without ending it, and waits until it has stopped. Connections
// stay open, the kernel accepts new ones, and requests wait until Resume.
func (s *Server) Pause() { s.freeze(true, Pause) }

// Resume continues a paused server. The server then handles all requests that wait.
func (s *Server) Resume() { s.freeze(false, Resume) }

func (s *Server) freeze(paused bool, signal syscall.Signal) {
	s.TB.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.run.Signal(signal); err != nil {
		s.TB.Fatalf("%s on %s: %v: %v", s.Name, s.Addr, signal, err)
	}
	s.paused = paused
	if paused {
		s.run.AwaitStop()
	}
}
