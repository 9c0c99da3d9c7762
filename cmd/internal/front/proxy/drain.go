package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// pollEvery is how often a draining server checks for requests in flight.
	pollEvery = 5 * time.Millisecond
	// maxGrace is enough for a distant client to send a request that it has started.
	maxGrace = time.Second
	// abortTimeout is how long aborted handlers have to return.
	abortTimeout = time.Second
)

// Drain stops accepting connections and waits for the requests in flight. When ctx ends,
// it aborts the rest, and the error says how many.
//
// Drain serves open connections for a moment, because closing them at once would lose
// requests on their way. Every response now asks its client to reconnect. The client can
// then reach another process on the same socket without an error.
func (s *Server) Drain(ctx context.Context) error {
	s.stopAccepting()
	s.linger(ctx)
	err := s.shutdown(ctx)
	s.settled(ctx) // Shutdown does not wait for upgraded connections.
	left := s.proxy.traffic.InFlight.Load()
	s.pressure.Stop()
	s.cancel() // The context also ends upgraded connections.
	closed := errors.Join(s.http.Close(), s.later.Close())
	s.servingFallbacks.Wait()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	s.settled(ending)
	_ = s.fast.Shutdown(ending) // Its connections are closed, and their goroutines end.
	_ = s.http2.Shutdown(ending)
	switch {
	case left > 0:
		return fmt.Errorf("proxy: requests aborted at shutdown: %d: raise shutdown_timeout to let them end", left)
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("proxy: %w", err)
	case closed != nil:
		return fmt.Errorf("proxy: %w", closed)
	default:
		return nil // Connections without a request do not count.
	}
}

// shutdown closes idle connections and waits for the others. All servers do so at once:
// each could otherwise wait for requests that another still accepts.
func (s *Server) shutdown(ctx context.Context) error {
	all := [...]func(context.Context) error{s.http.Shutdown, s.later.Shutdown, s.fast.Shutdown, s.http2.Shutdown}
	var errs [len(all)]error
	var stopping sync.WaitGroup
	for i, stop := range all {
		stopping.Go(func() { errs[i] = stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs[:]...)
}

// stopAccepting closes the listeners. If another process serves the same socket, that
// process accepts the queued connections.
func (s *Server) stopAccepting() {
	s.mu.Lock()
	s.draining.Store(true)
	listeners := s.listeners
	s.listeners = nil
	s.mu.Unlock()
	for _, ln := range listeners {
		_ = ln.Close() // The caller may have closed the listener already.
	}
	s.serving.Wait()
}

// linger serves open connections until they close, for at most a tenth of the time left.
// After its Shutdown starts, net/http drops requests that it has already read.
func (s *Server) linger(ctx context.Context) {
	grace := maxGrace
	if end, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(end)/10)
	}
	over := time.NewTimer(grace)
	defer over.Stop()
	tick := time.NewTicker(pollEvery)
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

// closeFresh closes connections that have not sent a request. net/http would wait for
// them.
func (s *Server) closeFresh() {
	for _, c := range s.pressure.all() {
		if fresh := c.fresh.Load(); fresh != nil {
			_ = fresh.Close()
		}
	}
}

// settled waits until no handler runs or ctx ends.
func (s *Server) settled(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for s.proxy.traffic.InFlight.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
