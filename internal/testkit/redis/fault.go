package redis

import (
	"errors"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Stop ends the server at once, and waits until it has. It may be called twice.
func (s *Server) Stop() { s.Kill() }

// Kill ends the server as kill -9 does: connections are reset, nothing is saved,
// nobody is told. It returns when the process is gone.
func (s *Server) Kill() {
	run, _ := s.current()
	run.Kill()
}

// Restart kills the server if it runs, and starts it again on the same port. What
// it held is gone; a cluster's node still knows the cluster, and a sentinel its master.
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
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // sleep: whoever has the port may leave it
	}
	s.tb.Fatalf("redis-server does not start again on %s: %v", s.Addr, errors.Join(problems...))
}

// Pause stops the server without ending it: connections stay open, new ones are
// accepted by the kernel, and nothing is answered until Resume.
func (s *Server) Pause() { s.freeze(true, process.Pause) }

// Resume lets a paused server go on. It answers all that it was sent meanwhile.
func (s *Server) Resume() { s.freeze(false, process.Resume) }

func (s *Server) freeze(paused bool, signal syscall.Signal) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.run.Signal(signal); err != nil {
		s.tb.Fatalf("redis-server on %s: %v: %v", s.Addr, signal, err)
	}
	s.paused = paused
	if paused {
		s.run.AwaitStop()
	}
}
