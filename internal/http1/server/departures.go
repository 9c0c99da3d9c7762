package server

import "time"

// lookEvery is how often the server looks for clients that have left while their request is
// in progress. A faster answer costs nothing. A request is looked at after at most twice
// this time.
const lookEvery = 250 * time.Millisecond

// The values of conn.progress.
const (
	noRequest   int32 = iota
	newRequest        // since less than one look
	slowRequest       // was in progress at the last look
)

// look looks for clients that have left, until the server has no connections.
func (s *Server) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var slow []*conn
	for range tick.C {
		s.mu.Lock()
		if len(s.conns) == 0 {
			s.looking = false
			s.mu.Unlock()
			return
		}
		for c := range s.conns {
			if !c.progress.CompareAndSwap(newRequest, slowRequest) && c.progress.Load() == slowRequest {
				slow = append(slow, c)
			}
		}
		s.mu.Unlock()
		for _, c := range slow {
			c.look()
		}
		clear(slow)
		slow = slow[:0]
	}
}

// look ends the request if the client has left. A client that has not sent its whole body
// is noticed where the body is read.
func (c *conn) look() {
	if c.socket == nil || !c.departed() {
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
