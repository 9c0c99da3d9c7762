package server

import (
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// checkEvery is the default of Config.CheckEvery.
const checkEvery = 250 * time.Millisecond

// The values of conn.progress.
const (
	noRequest   int32 = iota
	newRequest        // since the last check
	slowRequest       // was in progress at the last check
)

// check starts checkClients, if it does not run. The caller holds mu.
func (s *Server) check() {
	if s.checking == nil {
		s.checking = make(chan struct{})
		go s.checkClients(s.checking)
	}
}

// endCheck ends checkClients, if there is nothing to check. The caller holds mu.
func (s *Server) endCheck() {
	if len(s.conns) == 0 && len(s.idle) == 0 && s.checking != nil {
		close(s.checking)
		s.checking = nil
	}
}

// checkClients checks for clients that have disconnected and for workers that nothing needs, until the server has no connections
// and no workers.
func (s *Server) checkClients(over <-chan struct{}) {
	tick := time.NewTicker(s.config.CheckEvery)
	defer tick.Stop()
	var slow []*conn
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		s.trim()
		slow = s.slow(slow[:0])
		for _, c := range slow {
			c.checkClient()
		}
		clear(slow)
	}
}

// slow appends the connections whose request was in progress at the last check.
func (s *Server) slow(to []*conn) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if !c.progress.CompareAndSwap(newRequest, slowRequest) && c.progress.Load() == slowRequest {
			to = append(to, c)
		}
	}
	return to
}

// checkClient ends the request if the client has disconnected. While the client still sends its
// body, the reader of the body notices the disconnect.
func (c *conn) checkClient() {
	switch ahead, watched := c.Conn.(*http1.Ahead); {
	case watched:
		c.watchClient(ahead)
	case c.Raw.Disconnected():
		c.clientLeft()
	}
}

// watchClient waits for the end of a connection whose socket does not tell, while nothing else reads.
func (c *conn) watchClient(ahead *http1.Ahead) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lent != nil && c.lent.waits() || c.transaction != nil && c.transaction.received() {
		ahead.Watch(c.clientLeft)
	}
}

// clientLeft ends the request.
func (c *conn) clientLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lent != nil:
		c.lent.clientLeft()
	case c.transaction != nil && c.transaction.received():
		c.transaction.ctx.end()
	}
}

// received reports whether the whole request has been read.
func (t *transaction) received() bool { return t.body.conn == nil || t.body.ended.Load() }
