package etcd

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Stop ends the server at once, and waits until it has. It may be called twice.
func (s *Server) Stop() { s.Kill() }

// Kill ends the server as kill -9 does: connections are reset, nobody is told. It
// returns when the process is gone.
func (s *Server) Kill() {
	run, _ := s.current()
	run.Kill()
}

// Restart kills the server if it runs, and starts it again on the same ports with what
// it has on disk.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	s.again()
}

// RestartEmpty is Restart for a server that has lost its disk: it is another cluster,
// and counts revisions anew.
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
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // sleep: whoever has the port may leave it
	}
	s.tb.Fatalf("etcd does not start again on %s: %v", s.Addr, errors.Join(problems...))
}

// Pause stops the server without ending it: connections stay open, new ones are
// accepted by the kernel, and nothing is answered until Resume. When it returns, the
// server has stopped.
func (s *Server) Pause() { s.freeze(true, process.Pause) }

// Resume lets a paused server go on. It does all that it was sent meanwhile.
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
