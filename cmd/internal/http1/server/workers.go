package server

import "slices"

// mostIdle bounds the idle workers, and their memory to about 2 MiB: a stack that has grown has
// 8 KiB. The collector shrinks it.
const mostIdle = 256

// worker is a goroutine that serves one connection after the other. The stack of a new
// goroutine grows several times during its first request, which takes 4 µs.
type worker chan *conn

// work serves c, and then the connections that Serve gives to the worker.
func (s *Server) work(c *conn) {
	w := make(worker, 1) // Serve does not wait for the worker.
	for c != nil {
		c.serve()
		if !s.rest(w) {
			return
		}
		c = <-w
	}
}

// rest adds an idle worker. It returns false if there are enough.
func (s *Server) rest(w worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() || len(s.idle) >= mostIdle {
		return false
	}
	s.idle = append(s.idle, w)
	s.check()
	return true
}

// trim ends the idle workers that no connection has needed since the last check.
func (s *Server) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.idle[:s.unneeded] { // The worker that was used last is at the end.
		close(w)
	}
	s.idle = slices.Delete(s.idle, 0, s.unneeded)
	s.unneeded = len(s.idle)
	s.endCheck()
}

// dismiss ends the idle workers. The caller holds mu, and has set closing.
func (s *Server) dismiss() {
	for _, w := range s.idle {
		close(w)
	}
	s.idle, s.unneeded = nil, 0
	s.endCheck()
}
