package guard

import (
	"context"
	"slices"
	"sync"

	"github.com/headgate/headgate"
)

// maxReturns bounds the requests that were not made and wait for the return of their units to a
// shared store. Beyond that bound, units stay counted as used.
const maxReturns = 4096

// returns gives back the units of requests that were not made. One goroutine does so, until the
// backlog is empty. So Ticket.Done does not wait for a shared store.
type returns struct {
	mu      sync.Mutex
	backlog []func()
	running bool
	dropped uint64
	emptied chan struct{} // closed when the backlog is empty; nil without a waiting caller
}

// add queues a return.
func (r *returns) add(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.backlog) >= maxReturns {
		r.dropped++
		return
	}
	r.backlog = append(r.backlog, f)
	if !r.running {
		r.running = true
		go r.run()
	}
}

func (r *returns) run() {
	for f := r.next(); f != nil; f = r.next() {
		f()
	}
}

func (r *returns) next() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.backlog) == 0 {
		r.running, r.backlog = false, nil
		if r.emptied != nil {
			close(r.emptied)
			r.emptied = nil
		}
		return nil
	}
	f := r.backlog[0]
	r.backlog = r.backlog[1:]
	return f
}

// drain waits until the backlog is empty, or ctx ends.
func (r *returns) drain(ctx context.Context) error {
	r.mu.Lock()
	if !r.running {
		r.mu.Unlock()
		return nil
	}
	if r.emptied == nil {
		r.emptied = make(chan struct{})
	}
	emptied := r.emptied
	r.mu.Unlock()
	select {
	case <-emptied:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drain waits until the unused units of ended requests are returned to the store, or ctx ends.
// A server calls Drain after its last request has ended.
func (g *Guard) Drain(ctx context.Context) error {
	if g.now() == nil {
		return headgate.ErrNotMade
	}
	return g.state.returns.drain(ctx)
}

// Unreturned counts the requests with units that could not be returned, because the backlog was
// full. These units stay counted until they expire.
func (g *Guard) Unreturned() uint64 {
	if g.now() == nil {
		return 0
	}
	g.state.returns.mu.Lock()
	defer g.state.returns.mu.Unlock()
	return g.state.returns.dropped
}

// abandon returns the units that fair share and the rules counted for a request that is not
// made. A store in memory gets them at once, a shared store in the background.
func (g *Guard) abandon(s *set, a *Answer) {
	g.leaveQueues(a)
	a.uncount()
	if s.config.StoreTimeout <= 0 || a.local != nil {
		_ = g.giveUp(context.Background(), a) // A store in memory does not fail.
		return
	}
	if !a.tookUnits() {
		return
	}
	kept := &Answer{Results: slices.Clone(a.Results)} // The caller reuses the Answer.
	g.state.returns.add(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.config.StoreTimeout)
		defer cancel()
		_ = g.giveUp(ctx, kept) // Units that cannot be returned stay counted, which is safe.
	})
}

// tookUnits reports whether there are units to return.
func (a *Answer) tookUnits() bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.member != nil || !r.Decision.Receipt.Empty() {
			return true
		}
	}
	return false
}
