package server

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
	return true
}

// dismiss ends the idle workers. The caller holds mu, and has set closing.
func (s *Server) dismiss() {
	for _, w := range s.idle {
		close(w)
	}
	s.idle = nil
}
