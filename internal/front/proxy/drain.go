package proxy

import (
	"context"
	"fmt"
	"net"
	"time"
)

const (
	// settle is how often a draining server looks whether its clients are done.
	settle = 5 * time.Millisecond
	// longestGrace is enough for a client far away to send what it was about to.
	longestGrace = time.Second
	// brokenOff is how long handlers get to notice that they were broken off.
	brokenOff = time.Second
)

// Drain takes no further connection and lets the requests under way end. Those
// that have not when ctx ends are broken off, and the error says how many.
//
// A connection that is open is served for a while yet: closed at once, it would
// meet requests that are on their way. Every answer from now on tells its client
// to open another connection, so that clients move to another process, which may
// be serving the same socket, without an error.
func (s *Server) Drain(ctx context.Context) error {
	s.stopAccepting()
	s.linger(ctx)
	err := s.http.Shutdown(ctx)
	s.settled(ctx) // Shutdown does not wait for upgraded connections.
	left := s.proxy.traffic.InFlight.Load()
	s.cancel() // Upgraded connections end with it.
	closed := s.http.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokenOff)
	defer cancel()
	s.settled(ending)
	switch {
	case left > 0:
		return fmt.Errorf("proxy: requests broken off: %d: raise shutdown_timeout to let them end", left)
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("proxy: %w", err)
	case closed != nil:
		return fmt.Errorf("proxy: %w", closed)
	default:
		return nil // Connections that never sent a request are no loss.
	}
}

// stopAccepting closes the listeners. Connections in the queue of a socket that
// another process serves too are that process's.
func (s *Server) stopAccepting() {
	s.mu.Lock()
	s.draining.Store(true)
	listeners := s.listeners
	s.listeners = nil
	s.mu.Unlock()
	for _, ln := range listeners {
		_ = ln.Close() // It may be closed by another's hand.
	}
	s.serving.Wait()
}

// linger serves open connections until they are gone, for a tenth of the time
// that there is. net/http, once it shuts down, drops requests that it has read.
func (s *Server) linger(ctx context.Context) {
	grace := longestGrace
	if end, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(end)/10)
	}
	over := time.NewTimer(grace)
	defer over.Stop()
	tick := time.NewTicker(settle)
	defer tick.Stop()
	for s.open.Load() > 0 {
		select {
		case <-tick.C:
		case <-over.C:
			s.closeFresh()
			return
		case <-ctx.Done():
			return
		}
	}
}

// closeFresh closes connections that have sent nothing in all that time, for which
// net/http would wait.
func (s *Server) closeFresh() {
	s.fresh.Range(func(c, _ any) bool {
		if conn, ok := c.(net.Conn); ok {
			_ = conn.Close()
		}
		return true
	})
}

// settled waits until no handler runs, or ctx ends.
func (s *Server) settled(ctx context.Context) {
	tick := time.NewTicker(settle)
	defer tick.Stop()
	for s.proxy.traffic.InFlight.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
