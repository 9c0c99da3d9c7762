package access

import (
	"sync/atomic"
	"time"
)

// Session is a stream or a connection whose client is known. It is safe for concurrent use.
type Session struct {
	control *Control
	by      identity
	client  atomic.Pointer[Client]
	end     func()
}

// open begins a session of a client. end is called, in a goroutine of its own, when the credentials end. It is
// nil for a listener without auth.
func (c *Control) open(client *Client, by identity, end func()) *Session {
	s := &Session{control: c, by: by, end: end}
	s.client.Store(client)
	if end == nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.callers.Load().find(&by, time.Now()) // The credentials may have ended since they were checked.
	if now == nil {
		go end()
		return s
	}
	s.client.Store(now)
	c.sessions[s] = struct{}{}
	return s
}

// Client gives the client with its present rights.
func (s *Session) Client() *Client { return s.client.Load() }

// Close ends the session without a call of its function.
func (s *Session) Close() {
	if s == nil || s.end == nil {
		return
	}
	s.control.mu.Lock()
	defer s.control.mu.Unlock()
	delete(s.control.sessions, s)
}

// endSessions ends the sessions whose credentials have ended, gives the others their present rights, and sets
// the timer for the credentials that end next.
func (c *Control) endSessions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, current := time.Now(), c.callers.Load()
	for s := range c.sessions {
		if client := current.find(&s.by, now); client != nil {
			s.client.Store(client)
			continue
		}
		delete(c.sessions, s)
		go s.end()
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.expiry = nil
	if next, found := current.nextEnd(now); found && !c.closed {
		c.expiry = time.AfterFunc(next.Sub(now), c.endSessions)
	}
}

// nextEnd gives the time at which credentials end next.
func (s *callers) nextEnd(now time.Time) (next time.Time, found bool) {
	for _, client := range s.all {
		if !client.ended(now) && !client.until.IsZero() && (!found || client.until.Before(next)) {
			next, found = client.until, true
		}
	}
	return next, found
}
