package redis

import (
	"errors"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Stop kills the server and waits until it has ended. A second call does nothing.
func (s *Server) Stop() { s.Kill() }

// Kill ends the server as kill -9 does, and waits until the process has ended. The server saves
// no data, and its connections are reset.
func (s *Server) Kill() {
	run, _ := s.current()
	run.Kill()
}

// Restart kills the server if it runs, and starts it again on the same port without its keys. A
// node of a cluster still knows the cluster, and a sentinel still knows its master.
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
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // sleep: another program may release the port
	}
	s.tb.Fatalf("redis-server does not restart on %s: %v", s.Addr, errors.Join(problems...))
}

// Pause stops the server's process without ending it. Connections stay open, the kernel accepts
// new ones, and requests wait until Resume.
func (s *Server) Pause() { s.freeze(true, process.Pause) }

// Resume continues a paused server. The server then handles all requests that wait.
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
