package heap

import (
	"sync"
	"sync/atomic"
	"time"
)

// gate makes goroutines wait while it is shut. It is safe for concurrent use. The zero value is open.
type gate struct {
	mu   sync.Mutex                    // held by changes
	shut atomic.Pointer[chan struct{}] // nil while the gate is open; closed when the waiting goroutines look again
}

// set shuts or opens the gate.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	former := g.shut.Load()
	switch {
	case shut && former == nil:
		next := make(chan struct{})
		g.shut.Store(&next)
	case !shut && former != nil:
		g.shut.Store(nil)
		close(*former)
	}
}

// wake lets the goroutines that wait look whether they still have to.
func (g *gate) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if former := g.shut.Load(); former != nil {
		next := make(chan struct{})
		g.shut.Store(&next)
		close(*former)
	}
}

// wait blocks while the gate is shut, until goesOn reports true, and for most at the longest. It returns what is left of most.
func (g *gate) wait(most time.Duration, goesOn func() bool) (left time.Duration) {
	shut := g.shut.Load()
	if shut == nil || most <= 0 {
		return most
	}
	began, timer := time.Now(), time.NewTimer(most)
	defer timer.Stop()
	for ; shut != nil && !goesOn(); shut = g.shut.Load() {
		select {
		case <-*shut:
		case <-timer.C:
			return 0
		}
	}
	return max(0, most-time.Since(began))
}
