package server

import "time"

// lookEvery is the default of Config.LookEvery.
const lookEvery = 250 * time.Millisecond

// The values of conn.progress.
const (
	noRequest   int32 = iota
	newRequest        // since less than one look
	slowRequest       // was in progress at the last look
)

// look looks for clients that have left, until the server has no connections.
func (s *Server) look(over <-chan struct{}) {
	tick := time.NewTicker(s.config.LookEvery)
	defer tick.Stop()
	var slow []*conn
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		slow = s.slow(slow[:0])
		for _, c := range slow {
			c.look()
		}
		clear(slow)
	}
}

// slow appends the connections whose request was in progress at the last look.
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

// look ends the request if the client has left. A client that has not sent its whole body
// is noticed where the body is read.
func (c *conn) look() {
	if !c.Raw.Departed() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lent != nil:
		c.lent.clientLeft()
	case c.turn != nil && (c.turn.body.conn == nil || c.turn.body.ended.Load()):
		c.turn.ctx.end()
	}
}
