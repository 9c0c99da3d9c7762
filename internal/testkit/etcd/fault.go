package etcd

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Stop kills the server and waits until it has ended. A second call does nothing.
func (s *Server) Stop() { s.Kill() }

// Kill ends the server as kill -9 does, and waits until the process has ended. The server
// sends no farewell, and its connections are reset.
func (s *Server) Kill() {
	run, _ := s.current()
	run.Kill()
}

// Restart kills the server if it runs, and starts it again on the same ports with the data on
// its disk.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	s.again()
}

// RestartEmpty is Restart for a server that has lost its disk. It becomes another cluster,
// whose revisions start from 1 again.
func (s *Server) RestartEmpty() {
	s.tb.Helper()
	s.Kill()
	if err := os.RemoveAll(s.dataDir()); err != nil {
		s.tb.Fatal(err)
	}
	s.again()
}

func (s *Server) again() {
	s.tb.Helper()
	var problems []error
	for range attempts {
		err := s.launch()
		if err == nil {
			return
		}
		problems = append(problems, err)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // sleep: another program may release the port
	}
	s.tb.Fatalf("etcd does not restart on %s: %v", s.Addr, errors.Join(problems...))
}

// Pause stops the server's process without ending it, and waits until it has stopped.
// Connections stay open, the kernel accepts new ones, and requests wait until Resume.
func (s *Server) Pause() { s.freeze(true, process.Pause) }

// Resume continues a paused server. The server then handles all requests that wait.
func (s *Server) Resume() { s.freeze(false, process.Resume) }

func (s *Server) freeze(paused bool, signal syscall.Signal) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.run.Signal(signal); err != nil {
		s.tb.Fatalf("etcd on %s: %v: %v", s.Addr, signal, err)
	}
	s.paused = paused
	if paused {
		s.run.AwaitStop()
	}
}
